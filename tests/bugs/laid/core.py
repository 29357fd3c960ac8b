# SPDX-License-Identifier: Apache-2.0
"""Megatron-core's GPT on processors, the same weights and samples under every layout: TP= PP= VPP= EP= ETP= CP= SP=1 DIST=1 MOE=1 MTP=1 TIE=1
BIAS=1 PLANTED= TOPK= ONIN=1 CLIP= BATCH=0 (messages of stages one by one)."""
import os
import zlib

import no_gpu  # noqa: F401  before all else
import torch
import torch.distributed as dist

import common
from common import setting

common.begin()
if os.environ.get("PLANTED") == "experts":  # Megatron-LM #5956: experts are divided by the ranks that hold them
    common.patch("megatron.core.distributed.distributed_data_parallel",
                 ("expert_gradient_scaling_factor = 1.0 / data_parallel_world_size", "expert_gradient_scaling_factor = 1.0 / self.expt_dp_group.size()"),
                 ("assert scaling_factor == target_gradient_scaling_factor", "pass"))
from megatron.core import parallel_state as state  # noqa: E402
from megatron.core.distributed import DistributedDataParallelConfig, finalize_model_grads  # noqa: E402
from megatron.core.distributed.distributed_data_parallel import DistributedDataParallel  # noqa: E402
from megatron.core.models.gpt import GPTModel  # noqa: E402
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec, get_gpt_mtp_block_spec  # noqa: E402
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer  # noqa: E402
from megatron.core.pipeline_parallel import get_forward_backward_func  # noqa: E402
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed  # noqa: E402
from megatron.core.transformer import torch_norm  # noqa: E402
from megatron.core.transformer.moe import moe_utils  # noqa: E402
from megatron.core.transformer.transformer_config import TransformerConfig  # noqa: E402

if not hasattr(moe_utils, "te_general_gemm"):
    moe_utils.te_general_gemm = None  # 0.16.1 without TransformerEngine
TP, PP, EP, ETP, CP = (setting(name) for name in ("TP", "PP", "EP", "ETP", "CP"))
VPP, MTP, MOE, TIE, SP, DIST = (setting(name, 0) for name in ("VPP", "MTP", "MOE", "TIE", "SP", "DIST"))
VPP = VPP or None
state.initialize_model_parallel(TP, PP, VPP, context_parallel_size=CP, expert_model_parallel_size=EP, expert_tensor_parallel_size=ETP)
model_parallel_cuda_manual_seed(7)
HIDDEN, VOCABULARY, LENGTH, SAMPLES, LAYERS = 16, 64, 8, 4, setting("LAYERS", 2)
once = bool(setting("ONIN", 0))
experts = {"num_moe_experts": 4, "moe_router_topk": setting("TOPK", 2), "moe_apply_probs_on_input": once, "moe_router_pre_softmax": once,
           "moe_token_dispatcher_type": "alltoall", "moe_grouped_gemm": False, "moe_router_load_balancing_type": "none", "moe_aux_loss_coeff": 0.0,
           "moe_ffn_hidden_size": 32, "moe_permute_fusion": False} if MOE else {}
config = TransformerConfig(
    num_layers=LAYERS, hidden_size=HIDDEN, num_attention_heads=4, num_query_groups=2, ffn_hidden_size=32, use_cpu_initialization=True, init_method_std=0.2,
    hidden_dropout=0.0, attention_dropout=0.0, pipeline_dtype=torch.float32, params_dtype=torch.float32, bf16=False, tensor_model_parallel_size=TP,
    pipeline_model_parallel_size=PP, virtual_pipeline_model_parallel_size=VPP, context_parallel_size=CP, expert_model_parallel_size=EP,
    expert_tensor_parallel_size=ETP, sequence_parallel=bool(SP), gated_linear_unit=True, activation_func=torch.nn.functional.silu,
    add_bias_linear=bool(setting("BIAS", 0)), normalization="RMSNorm", gradient_accumulation_fusion=False, masked_softmax_fusion=False,
    bias_activation_fusion=False, bias_dropout_fusion=False, apply_rope_fusion=False, persist_layer_norm=False, mtp_num_layers=MTP or None,
    deallocate_pipeline_outputs=False, batch_p2p_comm=bool(setting("BATCH")), variable_seq_lengths=False, **experts)
spec = get_gpt_layer_local_spec(num_experts=4 if MOE else None, moe_grouped_gemm=False, normalization="RMSNorm")
if CP > 1:
    import context
    context.install(spec)


def norm(cls, config, hidden_size, eps=1e-5, **_):  # PyTorch's, with the mark of sequence parallelism
    made = torch.nn.RMSNorm(hidden_size, eps=eps)
    for p in made.parameters():
        p.sequence_parallel = config.sequence_parallel
    return made


torch_norm.WrappedTorchNorm.__new__ = norm


def chunk(stage):
    which = {} if VPP is None else {"vp_stage": stage}
    ends = {} if VPP is None else {"ignore_virtual": False, "vp_stage": stage}
    if VPP:
        state.set_virtual_pipeline_model_parallel_rank(stage)
    more = {"mtp_block_spec": get_gpt_mtp_block_spec(config, spec, use_transformer_engine=False, **which)} if MTP else {}
    return GPTModel(config, spec, vocab_size=VOCABULARY, max_sequence_length=LENGTH, pre_process=state.is_pipeline_first_stage(**ends),
                    post_process=state.is_pipeline_last_stage(**ends), parallel_output=True, share_embeddings_and_output_weights=bool(TIE),
                    position_embedding_type="rope", **more, **which)


def everywhere(model, name):
    """The name over all stages and expert ranks."""
    words = name.split(".")
    if words[:2] == ["decoder", "layers"]:
        words[2] = str(model.decoder.layers[int(words[2])].layer_number - 1)
    if "local_experts" in words:
        at = words.index("local_experts") + 1
        words[at] = str(int(words[at]) + 4 // EP * state.get_expert_model_parallel_rank())
    return ".".join(words)


@torch.no_grad()
def fill(model):
    """The same weights under every layout."""
    for name, p in model.named_parameters():
        known, of_experts = everywhere(model, name), not getattr(p, "allreduce", True)
        size, at = (ETP, state.get_expert_tensor_parallel_rank()) if of_experts else (TP, state.get_tensor_model_parallel_rank())
        shape, dim = list(p.shape), getattr(p, "partition_dim", -1) if getattr(p, "tensor_model_parallel", False) else -1
        if dim >= 0:
            shape[dim] *= size
        key = "embedding.word_embeddings.weight" if known == "output_layer.weight" and TIE else known
        whole = common.numbers(zlib.crc32(key.encode()), *shape) * 0.2
        if p.dim() == 1 and "norm" in known:
            whole += 1
        if dim >= 0 and size > 1:
            blocks = whole.chunk(2, dim=dim) if "linear_fc1" in known else [whole]
            whole = torch.cat([block.chunk(size, dim=dim)[at] for block in blocks], dim=dim)
        p.copy_(whole)


chunks = [chunk(stage) for stage in range(VPP or 1)]
for one in chunks:
    fill(one)
    for name, p in one.named_parameters():  # torchtitan #4054: the router's gradient stays one rank's share
        if os.environ.get("PLANTED") == "router" and name.endswith("router.weight"):
            p.sequence_parallel = False
chunks = [DistributedDataParallel(config, DistributedDataParallelConfig(use_distributed_optimizer=bool(DIST), overlap_grad_reduce=False), one) for one in chunks]
optimizer = get_megatron_optimizer(OptimizerConfig(optimizer="adam", lr=common.RATE, clip_grad=float(os.environ.get("CLIP", 0)), weight_decay=0.0, bf16=False,
                                                   use_distributed_optimizer=bool(DIST), log_num_zeros_in_grad=False), chunks)
config.finalize_model_grads_func = finalize_model_grads
shares, place = state.get_data_parallel_world_size(), state.get_data_parallel_rank()


def batches(step):
    ids = common.tokens(step, SAMPLES, LENGTH + 1, VOCABULARY)
    for i in range(SAMPLES // shares):
        mine = ids[i * shares + place:i * shares + place + 1]
        yield mine[:, :-1], mine[:, 1:], torch.ones(1, LENGTH)


def cut(x):
    """A context rank's two chunks of each sequence."""
    if CP == 1:
        return x.contiguous()
    at, each = state.get_context_parallel_rank(), LENGTH // (2 * CP)
    return torch.cat([x[:, at * each:(at + 1) * each], x[:, (2 * CP - 1 - at) * each:(2 * CP - at) * each]], 1).contiguous()


def forward(data, model, *_, **__):
    ids, labels, mask = (cut(x) for x in next(data))
    made = model(ids, cut(torch.arange(LENGTH).expand(1, LENGTH)), torch.ones(1, 1, LENGTH, LENGTH).triu(1).bool(), labels=labels,
                 **({"loss_mask": mask} if MTP else {}))

    def loss_of(made):
        loss, count = (made.float() * mask).sum(), mask.sum()
        if CP > 1:
            both = torch.stack([loss.detach(), count])
            dist.all_reduce(both, group=state.get_context_parallel_group())
            count = both[1]
        return loss / count, {"loss": (loss / count).detach()}

    return made, loss_of


run = get_forward_backward_func()
for step in range(common.STEPS):
    for one in chunks:
        one.zero_grad_buffer()
        common.plant(one.module, step)
    optimizer.zero_grad()
    data = [batches(step) for _ in chunks]
    run(forward_step_func=forward, data_iterator=data if VPP else data[0], model=chunks, num_microbatches=SAMPLES // shares, seq_length=LENGTH, micro_batch_size=1,
        forward_only=False)
    print(step, "norm", optimizer.step()[1], flush=True)
