# SPDX-License-Identifier: Apache-2.0
"""Writes small real checkpoints with the packages themselves, and beside each what the live training held.

python checkpoints_write.py OUT CASE... ; a case is KIND[:KEY=VALUE]...:
  deepspeed:stage=2:ranks=2:dtype=bf16   into OUT/CASE/checkpoint, by the DeepSpeed on PYTHONPATH
  dcp, titan, fsdp1, fsdp1_full, accelerate, trainer, lightning, plain, megatron:ranks=4:tp=2:optim=fully_reshardable

OUT/CASE/truth.pt: {weight, master, exp_avg, exp_avg_sq: {name: tensor}, step: {name: steps}}, taken from the model and the
optimizer in memory, never from the folder that was written.
"""
import logging
import os
import shutil
import sys

os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("DS_BUILD_OPS", "0")
os.environ.setdefault("DS_SKIP_CUDA_CHECK", "1")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    """Widths that no number of ranks divides, two groups, a tie, a frozen matrix, a buffer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.emb = nn.Embedding(11, 7)
        self.fc1 = nn.Linear(7, 13)
        self.norm = nn.LayerNorm(13)
        self.fc2 = nn.Linear(13, 7)
        self.fz = nn.Linear(5, 13, bias=False)
        self.fz.weight.requires_grad_(False)
        self.head = nn.Linear(7, 11, bias=False)
        self.head.weight = self.emb.weight
        self.register_buffer("buf", torch.arange(6, dtype=torch.float32))

    def forward(self, x):
        h = self.norm(F.gelu(self.fc1(self.emb(x))))
        h = h + self.fz.weight.sum(1).to(h.dtype) * 0.01
        return self.head(self.fc2(h))


def groups(model):
    """Decay and no decay, as most trainers have it; a tied parameter once."""
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    return [{"params": [p for n, p in named if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for n, p in named if p.dim() <= 1], "weight_decay": 0.0}]


def batch(step, rank):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randint(0, 11, (4, 6), generator=generator)


def loss_of(model, ids):
    return F.cross_entropy(model(ids).float().flatten(0, 1), ids.flatten())


def keep(truth, path):
    torch.save({k: {n: (t.detach().clone().contiguous() if torch.is_tensor(t) else t) for n, t in v.items()} for k, v in truth.items()}, path)


def of_optimizer(model, optimizer, full=lambda t: t):
    truth = {"weight": {n: full(t) for n, t in model.state_dict().items()}, "exp_avg": {}, "exp_avg_sq": {}, "step": {}}
    for name, parameter in model.named_parameters():
        state = optimizer.state.get(parameter)
        if state:
            truth["exp_avg"][name] = full(state["exp_avg"])
            truth["exp_avg_sq"][name] = full(state["exp_avg_sq"])
            truth["step"][name] = float(state["step"])
    return truth


def compat():
    """What DeepSpeed of 2023 and 2024 imports and later releases of torch and numpy have dropped."""
    import numpy
    import torch.distributed.elastic.agent.server.api as api
    for m, k, v in ((api, "log", logging.getLogger("elastic")), (api, "_get_socket_with_port", None), (numpy, "BUFSIZE", 8192)):
        if not hasattr(m, k):
            setattr(m, k, v)


def without_building():
    """DeepSpeed compiles an operation for messages through shared memory at its start, which takes minutes; gloo does without."""
    from deepspeed.accelerator import get_accelerator
    if getattr(get_accelerator(), "_communication_backend_name", "") == "ccl":
        get_accelerator()._communication_backend_name = "gloo"
    held = sys.modules.get("deepspeed.comm.torch")
    if hasattr(held, "build_shm_op"):
        held.build_shm_op = lambda: None


def deepspeed_engine(o):
    """The engine of a case, before its first step, and its optimizer."""
    import deepspeed
    stage, dtype = int(o.get("stage", 1)), o.get("dtype", "bf16")
    zero = {"stage": stage}
    if o.get("sub_group"):
        zero["sub_group_size"] = int(o["sub_group"])
    if o.get("round_robin"):
        zero["round_robin_gradients"] = True
    if o.get("elastic"):
        zero["elastic_checkpoint"] = True
    if o.get("offload"):
        zero["offload_optimizer"] = {"device": "cpu"}
    config = {"train_micro_batch_size_per_gpu": 4, "zero_optimization": zero, "gradient_clipping": 1.0,
              "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 0, "warmup_max_lr": 0.01, "warmup_num_steps": 10}}}
    if o.get("offload"):
        config["zero_force_ds_cpu_optimizer"] = False
    if dtype == "bf16":
        config["bf16"] = {"enabled": True}
    if o.get("accum"):
        config["data_types"] = {"grad_accum_dtype": o["accum"]}
    if o.get("plain"):  # no schedule and no clipping: what FSDP of these tests does
        del config["scheduler"]
        config["gradient_clipping"] = 0.0  # without the key recent releases clip at 1
    if o.get("load_universal"):
        config["checkpoint"] = {"load_universal": True}
    model = Net()
    optimizer = torch.optim.AdamW(groups(model), lr=0.01)
    engine, optimizer, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    return engine, optimizer


def deepspeed(rank, ranks, folder, o):
    import deepspeed
    from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_optimizer_state
    stage, dtype = int(o.get("stage", 1)), o.get("dtype", "bf16")
    engine, optimizer = deepspeed_engine(o)
    model = engine.module
    for step in range(int(o.get("steps", 3))):
        engine.backward(loss_of(engine, batch(step, rank)))
        with torch.no_grad():  # 0.18.9 gathers into views of a tensor that wants gradients, which gloo's write then refuses
            engine.step()
    state = {"mine": 42}
    if o.get("universal"):
        from argparse import Namespace
        state["args"] = Namespace(width=7)
        state["universal_checkpoint_info"] = {"universal_checkpoint_version": 0.2}
    engine.save_checkpoint(folder, client_state=state)
    truth = {k: {} for k in ("weight", "master", "exp_avg", "exp_avg_sq", "step")}
    held = engine.module
    if stage == 0 and not hasattr(optimizer, "fp32_groups_flat_partition"):  # that: BF16_Optimizer, which cuts at ZeRO-0 too
        inner = getattr(optimizer, "optimizer", optimizer)
        named = [n for g in groups(model) for q in g["params"] for n, p in model.named_parameters() if p is q]
        masters = [p for g in inner.param_groups for p in g["params"]]
        for name, p in zip(named, masters):
            state = inner.state[p]
            if p.dtype == torch.float32 and dtype != "fp32":
                truth["master"][name] = p
            truth["exp_avg"][name], truth["exp_avg_sq"][name] = state["exp_avg"], state["exp_avg_sq"]
            truth["step"][name] = float(state["step"])
        truth["weight"] = dict(held.state_dict())
    else:
        for name, p in held.named_parameters():
            if stage == 3:
                with deepspeed.zero.GatheredParameters([p]):
                    truth["weight"][name] = p.data.clone()
            else:
                truth["weight"][name] = p.data.clone()
            if p.requires_grad:
                mapping = getattr(p, "_hp_mapping", None)
                if mapping is not None and hasattr(optimizer, "single_partition_of_fp32_groups"):
                    for flat in optimizer.single_partition_of_fp32_groups:  # torch's AdamW makes its state after DeepSpeed linked it
                        if mapping.hp_fragment.untyped_storage().data_ptr() == flat.untyped_storage().data_ptr():
                            at = mapping.hp_fragment_address
                            mapping.optim_fragment = {k: optimizer.optimizer.state[flat][k].narrow(0, at.start, at.numel)
                                                      for k in ("exp_avg", "exp_avg_sq")}
                if o.get("round_robin"):  # DeepSpeed's own look-up takes elements of other parameters: it does not know the order
                    truth["master"][name] = p.data.float().clone()
                    continue
                truth["master"][name] = safe_get_full_fp32_param(p)
                for k in ("exp_avg", "exp_avg_sq"):
                    truth[k][name] = safe_get_full_optimizer_state(p, k)
        truth["weight"]["buf"] = held.buf
    if rank == 0:
        keep(truth, os.path.join(os.path.dirname(folder), "truth.pt"))
    dist.barrier()
    if o.get("universal") and rank == 0:
        from argparse import Namespace as N
        from deepspeed.checkpoint.ds_to_universal import main
        tag = open(folder + "/latest").read()
        import inspect
        a = N(input_folder=os.path.join(folder, tag), output_folder=os.path.join(folder, tag + "_universal"), num_extract_workers=1,
              num_merge_workers=1, keep_temp_folder=False, strict=True, inject_missing_state=True)
        os.makedirs(a.output_folder, exist_ok=True)
        if inspect.signature(main).parameters:
            main(a)
        else:  # before 0.14
            sys.argv[1:] = ["--input_folder", a.input_folder, "--output_folder", a.output_folder, "--num_extract_workers", "1", "--num_merge_workers", "1"]
            main()


def fsdp2(model):
    from torch.distributed.fsdp import fully_shard
    for m in (model.fc1, model.norm, model.fc2):
        fully_shard(m)
    fully_shard(model)
    return model


def full_of(t):
    return t.full_tensor() if hasattr(t, "full_tensor") else t


def train(model, optimizer, rank, steps=3, backward=None):
    for step in range(steps):
        loss = loss_of(model, batch(step, rank))
        (backward or (lambda l: l.backward()))(loss)
        optimizer.step()
        optimizer.zero_grad()


def dcp(rank, ranks, folder, o):
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.state_dict import get_state_dict
    model = fsdp2(Net())
    optimizer = torch.optim.AdamW(groups(model), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 1.0)
    train(model, optimizer, rank)
    scheduler.step()
    truth = of_optimizer(model, optimizer, full_of)
    m, s = get_state_dict(model, optimizer)
    checkpoint.save({"model": m, "optimizer": s, "lr_scheduler": scheduler.state_dict(), "train_state": {"step": torch.tensor(3)}},
                    checkpoint_id=folder)
    if rank == 0:
        keep(truth, os.path.join(os.path.dirname(folder), "truth.pt"))


def titan(rank, ranks, folder, o):
    """As torchtitan: the model's keys at the top, the optimizer's state flattened."""
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_optimizer_state_dict
    model = fsdp2(Net())
    optimizer = torch.optim.AdamW(groups(model), lr=0.01)
    train(model, optimizer, rank)
    truth = of_optimizer(model, optimizer, full_of)
    state = dict(get_model_state_dict(model))
    state.update(get_optimizer_state_dict(model, optimizer, options=StateDictOptions(flatten_optimizer_state_dict=True)))
    state["train_state"] = {"step": torch.tensor(3), "ntokens_seen": 72}
    checkpoint.save(state, checkpoint_id=folder + "/step-3")
    if rank == 0:
        keep(truth, os.path.join(os.path.dirname(folder), "truth.pt"))


def fsdp1(rank, ranks, folder, o):
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, StateDictType, ShardedStateDictConfig
    from torch.distributed.fsdp import FullStateDictConfig, FullOptimStateDictConfig
    model = FSDP(Net(), use_orig_params=True, device_id=torch.device("cpu"))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01)
    train(model, optimizer, rank)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(offload_to_cpu=False), FullOptimStateDictConfig(offload_to_cpu=False)):
        whole, states = model.state_dict(), FSDP.optim_state_dict(model, optimizer)
    truth = {"weight": dict(whole), "exp_avg": {}, "exp_avg_sq": {}, "step": {}}
    full = [torch.tensor(0)] if rank else states
    for name, state in states["state"].items():
        truth["exp_avg"][name], truth["exp_avg_sq"][name], truth["step"][name] = state["exp_avg"], state["exp_avg_sq"], float(state["step"])
    if o.get("full"):
        if rank == 0:
            os.makedirs(folder, exist_ok=True)
            torch.save(whole, folder + "/pytorch_model_fsdp.bin")
            torch.save(states, folder + "/optimizer.bin")
    else:
        with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            checkpoint.save({"model": model.state_dict()}, checkpoint_id=folder + "/pytorch_model_fsdp_0")
            checkpoint.save({"optimizer": FSDP.optim_state_dict(model, optimizer)}, checkpoint_id=folder + "/optimizer_0")
    if rank == 0:
        keep(truth, os.path.join(os.path.dirname(folder), "truth.pt"))


def fsdp1_full(rank, ranks, folder, o):
    fsdp1(rank, ranks, folder, {**o, "full": 1})


class OnProcessors(torch.overrides.TorchFunctionMode):
    """Megatron-core asks for GPUs by name: here tensors of processors stand for theirs."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if str(kwargs.get("device")).startswith("cuda"):
            kwargs["device"] = "cpu"
        if function is torch.Tensor.cuda:
            return args[0]
        result = function(*args, **kwargs)
        return result.replace("torch.", "torch.cuda.") if function is torch.Tensor.type and isinstance(result, str) else result


def megatron(rank, ranks, folder, o):
    """Megatron-core's torch_dist, of a model that tp ranks share, and of ep ranks that share the experts of its blocks; with
    optim=SHARDING its distributed optimizer after three steps, cut among the others. It has the blocks' tensors stacked, one name for all."""
    torch.cuda.synchronize, torch.cuda.current_device = lambda *_: None, lambda: "cpu"  # which it calls without a look for a GPU
    with OnProcessors():
        megatron_saved(rank, folder, int(o.get("tp", 1)), int(o.get("ep", 1)), int(o.get("experts", 0)) or None, o.get("optim"))


def megatron_saved(rank, folder, tp, ep, experts, sharding):
    from megatron.core import dist_checkpointing, parallel_state
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    from megatron.core.transformer.transformer_config import TransformerConfig
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=tp, expert_model_parallel_size=ep, expert_tensor_parallel_size=1)
    config = TransformerConfig(num_layers=2, hidden_size=16, num_attention_heads=4, use_cpu_initialization=True, tensor_model_parallel_size=tp,
                               expert_model_parallel_size=ep, num_moe_experts=experts, bf16=bool(sharding),
                               params_dtype=torch.bfloat16 if sharding else torch.float32, add_bias_linear=not experts, gated_linear_unit=bool(experts), moe_ffn_hidden_size=8 if experts else None)
    model = GPTModel(config=config, transformer_layer_spec=get_gpt_layer_local_spec(num_experts=experts), vocab_size=32, max_sequence_length=16)

    def noise(parameter, seed):
        """The same on all ranks that have the same parameter."""
        part = parallel_state.get_tensor_model_parallel_rank() if getattr(parameter, "tensor_model_parallel", False) else 0
        if not getattr(parameter, "allreduce", True):
            part += parallel_state.get_expert_model_parallel_rank()
        return torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1000 * seed + part))

    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(noise(parameter, number))
    if sharding:
        model.bfloat16()  # as Megatron's Float16Module does
    saved, held = {"iteration": 3}, {"weight": lambda parameter: parameter.detach()}
    if sharding:
        trained = DistributedDataParallel(config, DistributedDataParallelConfig(use_distributed_optimizer=True), model)
        optimizer = get_megatron_optimizer(OptimizerConfig(optimizer="adam", lr=0.01, bf16=True, params_dtype=torch.bfloat16,
                                                           use_distributed_optimizer=True), [trained])
        for step in range(3):
            trained.zero_grad_buffer()
            for number, parameter in enumerate(model.parameters()):
                parameter.main_grad.copy_(noise(parameter, 100 * (step + 1) + number))
            optimizer.step()
        owner = {p: one for one in optimizer.chained_optimizers for ranges in one.gbuf_ranges for buffer in ranges.values()
                 for bucket in buffer for p in bucket["param_map"]}
        every = {p: one for one in optimizer.chained_optimizers for buffer in one.buffers for p in buffer.params}

        def of(key):
            def whole(parameter):  # each rank has some of its elements
                flat = torch.zeros(parameter.numel())
                if parameter in owner:
                    part, main = owner[parameter]._get_model_param_range_map(parameter)["param"], parameter.main_param
                    flat[part.start:part.end] = {"param": main, **owner[parameter].optimizer.state[main]}[key]
                dist.all_reduce(flat, group=every[parameter].data_parallel_group)
                return flat.view(parameter.shape)
            return whole
        held.update(master=of("param"), exp_avg=of("exp_avg"), exp_avg_sq=of("exp_avg_sq"))
    truth = {kind: megatron_whole(model, value, experts) for kind, value in held.items()}
    meta = {"distrib_optim_sharding_type": sharding, "chained_optim_avoid_prefix": True} if sharding else {}
    saved["model"] = model.sharded_state_dict(metadata=meta)
    if sharding:
        saved["optimizer"] = optimizer.sharded_state_dict(saved["model"], metadata=meta)
        truth["step"] = {name: 3.0 for name in truth["exp_avg"]}
    os.makedirs(folder, exist_ok=True)
    dist_checkpointing.save(saved, folder)
    if rank == 0:
        keep(truth, os.path.join(os.path.dirname(folder), "truth.pt"))


def megatron_whole(model, value, experts):
    """What value() says of each parameter, joined among the ranks, by the name that it has in torch_dist."""
    from megatron.core import parallel_state

    def gathered(tensor, group):
        parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, tensor.contiguous(), group=group)
        return parts

    blocks, whole = {}, {}
    for name, parameter in model.named_parameters():
        tensor = value(parameter).clone()
        if ".experts." in name:
            layer, number, rest = (lambda words: (words[2], int(words[6]), ".".join(words[7:])))(name.split("."))
            parts = gathered(tensor, parallel_state.get_expert_model_parallel_group())
            of = blocks.setdefault("decoder.layers.mlp.experts.experts." + rest, {}).setdefault(layer, {})
            of.update({number + rank * experts // len(parts): part for rank, part in enumerate(parts)})
            continue
        if getattr(parameter, "tensor_model_parallel", False):
            tensor = torch.cat(gathered(tensor, parallel_state.get_tensor_model_parallel_group()), parameter.partition_dim)
        if name.startswith("decoder.layers."):  # a norm has the name that it has where it is part of the next product
            name = name.replace("input_layernorm.", "self_attention.linear_qkv.layer_norm_").replace("pre_mlp_layernorm.", "mlp.linear_fc1.layer_norm_")
            blocks.setdefault("decoder.layers." + name.split(".", 3)[3], []).append(tensor)
        else:
            whole[name] = tensor
    for name, parts in blocks.items():
        if isinstance(parts, dict):
            parts = [torch.stack([layer[number] for number in sorted(layer)]) for layer in parts.values()]
        whole[name] = torch.stack(parts)
    return whole


def accelerate(rank, ranks, folder, o):
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True)
    model = Net()
    optimizer = torch.optim.AdamW(groups(model), lr=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 1.0 / (1 + s))
    model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)
    for step in range(3):
        accelerator.backward(loss_of(model, batch(step, rank)))
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    accelerator.save_state(folder, safe_serialization=not o.get("bin"))
    if rank == 0:
        keep(of_optimizer(accelerator.unwrap_model(model), optimizer.optimizer), os.path.join(os.path.dirname(folder), "truth.pt"))


def trainer(rank, ranks, folder, o):
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                         num_key_value_heads=1, max_position_embeddings=32, tie_word_embeddings=True)
    model = LlamaForCausalLM(config)
    data = [{"input_ids": batch(i, 0)[0], "labels": batch(i, 0)[0]} for i in range(16)]
    arguments = TrainingArguments(folder, max_steps=3, save_steps=3, per_device_train_batch_size=2, use_cpu=True, report_to=[],
                                  weight_decay=0.1, disable_tqdm=True, logging_steps=1)
    loop = Trainer(model=model, args=arguments, train_dataset=data)
    loop.train()
    if rank == 0:
        keep(of_optimizer(loop.accelerator.unwrap_model(loop.model), loop.optimizer.optimizer), os.path.join(os.path.dirname(folder), "truth.pt"))


def lightning(rank, ranks, folder, o):
    import pytorch_lightning as pl

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Net()

        def training_step(self, ids, _):
            return loss_of(self.model, ids)

        def configure_optimizers(self):
            return torch.optim.AdamW(groups(self.model), lr=0.01)

    module = Module()
    loop = pl.Trainer(max_steps=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False)
    loop.fit(module, torch.utils.data.DataLoader([batch(i, 0) for i in range(3)], batch_size=None))
    os.makedirs(folder, exist_ok=True)
    loop.save_checkpoint(folder + "/last.ckpt")
    keep(of_optimizer(module, loop.optimizers[0]), os.path.join(os.path.dirname(folder), "truth.pt"))


def plain(rank, ranks, folder, o):
    """One file of one's own: what most hand-written loops save."""
    model = Net()
    optimizer = torch.optim.AdamW(groups(model), lr=0.01)
    train(model, optimizer, rank)
    os.makedirs(folder, exist_ok=True)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 3}, folder + "/ckpt.pt")
    keep(of_optimizer(model, optimizer), os.path.join(os.path.dirname(folder), "truth.pt"))


def work(rank, ranks, case, folder, port):
    kind, *rest = case.split(":")
    o = dict(part.split("=") for part in rest)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    if kind not in ("lightning", "plain", "trainer", "accelerate") or ranks > 1:
        dist.init_process_group("gloo")
    globals()[kind](rank, ranks, folder, o)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def main():
    out = os.path.abspath(sys.argv[1])
    # Imported once: the processes of every case are copies of this one.
    if any(case.startswith("deepspeed") for case in sys.argv[2:]):
        compat()
        import deepspeed  # noqa: F401
        without_building()
    for case in sys.argv[2:]:
        o = dict(part.split("=") for part in case.split(":")[1:])
        ranks = int(o.get("ranks", 1))
        folder = os.path.join(out, case.replace(":", "-").replace("=", ""), "checkpoint")
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        import socket
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        children = []
        for rank in range(ranks):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    work(rank, ranks, case, folder, port)
                    status = 0
                except BaseException:  # the other ranks wait for this one: end at once
                    import traceback
                    traceback.print_exc()
                finally:
                    sys.stdout.flush(), sys.stderr.flush()
                    os._exit(status)
            children.append(child)
        failed = any([os.waitpid(child, 0)[1] for child in children])
        if failed:  # what it left is no checkpoint
            shutil.rmtree(os.path.dirname(folder), ignore_errors=True)
        print(("FAILED " if failed else "wrote ") + case, flush=True)


if __name__ == "__main__":
    main()
