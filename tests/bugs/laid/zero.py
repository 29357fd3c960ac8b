# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's layouts: MODE=pipe (TIED=1: the first layer's weight is the last one's), ulysses (MPU=1: by an mpu; else by a mesh), autotp, autoep (EP ranks), moe (EP ranks of its own layer), muon, hpz, and plain, PyTorch in
one process. STAGE, CLIP, HALF=1 (fp16), BF16=1 of muon. PLANTED: momentum, iterations, nesterov, clip, rate (muon), moments (autoep), stale (hpz)."""
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

import common

MODE, STAGE, CLIP = os.environ["MODE"], common.setting("STAGE", 0), float(os.environ.get("CLIP", 0))
PLAIN = common.setting("PLAIN", 0)
if not PLAIN:
    import deepspeed
    sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
    deepspeed.init_distributed("gloo")
configuration = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, "zero_allow_untested_optimizer": True, "gradient_clipping": CLIP,
                 "zero_optimization": {"stage": STAGE}, "steps_per_print": 1000}
rate = float(os.environ.get("RATE", common.RATE))


def optimizer_of(parameters):
    return torch.optim.SGD(parameters, rate) if common.setting("SGD", 0) else torch.optim.AdamW(parameters, rate)


def train(model, step_of, **given):
    """step_of(model, step): the loss of this rank's share."""
    parameters = given.pop("parameters", None) or list(model.parameters())
    optimizer = optimizer_of(parameters)
    engine = None if PLAIN else deepspeed.initialize(model=model, optimizer=optimizer, config=configuration, **given)[0]
    for step in range(common.STEPS):
        common.plant(model if PLAIN else engine.module, step)
        loss = step_of(model if PLAIN else engine, step)
        if PLAIN:
            loss.backward()
            if CLIP:
                nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            optimizer.zero_grad()
        else:
            engine.backward(loss)
            engine.step()


def of_language(model, ids):
    return model(input_ids=ids, labels=ids).loss


class End(nn.Module):
    """Its weight is a property, as in Megatron-DeepSpeed and GPT-NeoX."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 16, bias=False)

    @property
    def weight(self):
        return self.inner.weight

    def forward(self, x):
        return self.inner(x)


def pipe():
    configuration["gradient_accumulation_steps"] = 4
    torch.manual_seed(0)
    layers = [nn.Linear(16, 16), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 16), nn.Linear(16, 16)]
    if PLAIN:
        return train(nn.Sequential(*layers), lambda model, step: F.mse_loss(model(common.numbers(10 + step, 8, 16)), common.numbers(20 + step, 8, 16)))
    from deepspeed.pipe import PipelineModule, TiedLayerSpec
    if common.setting("TIED", 0):
        layers[::4] = [TiedLayerSpec("ends", End, forward_fn=None if at == 0 else lambda end, x: F.linear(x, end.weight)) for at in range(2)]
    net = PipelineModule(layers, num_stages=common.ranks, loss_fn=F.mse_loss, partition_method="uniform", activation_checkpoint_interval=0)
    engine = deepspeed.initialize(model=net, optimizer=optimizer_of(net.parameters()), config=configuration)[0]
    for step in range(common.STEPS):
        common.plant(net, step)
        x, y = common.numbers(10 + step, 8, 16), common.numbers(20 + step, 8, 16)
        engine.train_batch(iter([(common.share(x, i, 4), common.share(y, i, 4)) for i in range(4)]))


def ulysses():
    mpu, kept = None, {}
    if not PLAIN:
        from deepspeed.sequence.layer import DistributedAttention
        from deepspeed.utils import groups
        if common.setting("MPU", 0):
            import deepspeed.runtime.sequence_parallel.parallel_state_sp as mpu
            mpu.initialize_sequence_parallel(common.ranks)
            kept["mpu"] = mpu
        else:
            configuration.update(sequence_parallel_size=common.ranks, data_parallel_size=1)
            kept["mesh_param"] = (1, common.ranks)

    class Attention(nn.Module):
        def forward(self, q, k, v, *_):  # batch, sequence, heads, size
            return F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True).transpose(1, 2)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

        def forward(self, x):
            q, k, v = (part.reshape(*x.shape[:2], 4, 4) for part in self.qkv(x).chunk(3, -1))
            if PLAIN:
                made = Attention()(q, k, v)
            else:
                group = mpu.get_sequence_parallel_group() if mpu else groups._get_sequence_parallel_group()
                made = DistributedAttention(Attention(), group, 2, 1)(q, k, v, 0)
            return self.out(made.reshape(x.shape))

    def step_of(model, step):
        x = common.numbers(10 + step, 2, 8, 16)
        each = 8 // common.ranks
        made = model(x if PLAIN else x[:, each * common.rank:each * common.rank + each])
        return made.square().mean() * (common.ranks if PLAIN and common.setting("SUMS", 0) else 1)

    torch.manual_seed(0)
    train(Net(), step_of, **kept)


def autotp():
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                         attn_implementation="eager"))
    configuration["tensor_parallel"] = {"autotp_size": common.ranks}
    kept = {}
    if not PLAIN:  # the optimizer moves what is left of each parameter
        engine = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={**configuration, "optimizer": {"type": "AdamW", "params": {"lr": rate, "torch_adam": True}}})[0]
        for step in range(common.STEPS):
            common.plant(engine.module, step)
            engine.backward(of_language(engine, common.tokens(step, 2, 8)))
            engine.step()
        return
    train(model, lambda one, step: of_language(one, common.tokens(step, 2, 8)), **kept)


def autoep():
    from transformers import MixtralConfig, MixtralForCausalLM
    torch.manual_seed(0)
    model = MixtralForCausalLM(MixtralConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                             num_local_experts=4, num_experts_per_tok=2, router_aux_loss_coef=0.0, attn_implementation="eager"))
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "experts" in name:
                p.mul_(8)  # experts that weigh in the norm

    def step_of(one, step):
        ids = common.tokens(step, 4, 8)
        return of_language(one, ids if PLAIN else common.share(ids))

    if PLAIN:
        return train(model, step_of)
    configuration.update(train_micro_batch_size_per_gpu=4 // common.ranks, optimizer={"type": "SGD" if common.setting("SGD", 0) else "AdamW", "params": {"lr": rate, **({} if common.setting("SGD", 0) else {"torch_adam": True})}},
                         expert_parallel={"enabled": True, "autoep_size": common.setting("EP", 2), "preset_model": "mixtral", "use_grouped_mm": False})
    engine = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=configuration)[0]
    for step in range(common.STEPS):
        common.plant(engine.module, step)
        engine.backward(step_of(engine, step))
        engine.step()
        if os.environ.get("PLANTED") == "moments" and step == 0:  # DeepSpeed #8147: a resume gives experts the moments of another rank's
            for flat, state in engine.optimizer.optimizer.state.items():
                held = [torch.empty_like(state["exp_avg"]) for _ in range(common.ranks)]
                torch.distributed.all_gather(held, state["exp_avg"])
                if flat.numel() in {sum(p.numel() for p in group if not getattr(p, "allreduce", True)) for group in engine.optimizer.bit16_groups}:
                    state["exp_avg"].copy_(held[1 - common.rank])


def hpz():
    torch.manual_seed(0)
    configuration.update(bf16={"enabled": True})
    configuration["zero_optimization"].update(stage=3, zero_hpz_partition_size=2, stage3_param_persistence_threshold=0)
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    engine = deepspeed.initialize(model=net, optimizer=optimizer_of(net.parameters()), config=configuration)[0]
    if os.environ.get("PLANTED") == "stale":  # what forward gathers from is kept after the update
        engine.optimizer.invalidate_secondary_tensor = lambda: None
    for step in range(common.STEPS):
        engine.backward(engine(common.share(common.numbers(10 + step, 4, 8)).bfloat16()).float().square().mean())
        engine.step()


def moe():
    from deepspeed.moe.layer import MoE
    from deepspeed.moe.utils import split_params_into_different_moe_groups_for_optimizer

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(12, 24)
            self.moe = MoE(hidden_size=24, expert=nn.Linear(24, 24), num_experts=2, ep_size=common.setting("EP", 2), k=1, use_residual=False, capacity_factor=8.0,
                           min_capacity=4, use_rts=False, drop_tokens=False)
            self.last = nn.Linear(24, 6)

        def forward(self, x):
            x = torch.tanh(self.first(x))
            return self.last(x + self.moe(x)[0])

    torch.manual_seed(0)
    net = Net()
    if common.setting("HALF", 0):
        configuration["fp16"] = {"enabled": True, "loss_scale": 128}
    kind = torch.float16 if common.setting("HALF", 0) else torch.float32
    groups = split_params_into_different_moe_groups_for_optimizer([{"params": list(net.parameters()), "name": "all"}])
    train(net, lambda one, step: F.mse_loss(one(common.share(common.numbers(10 + step, 8, 12)).to(kind)).float(), common.share(common.numbers(20 + step, 8, 6))), parameters=groups)


def muon():
    import deepspeed.runtime.zero.muon.original_muon as made
    planted, update, iterated = os.environ.get("PLANTED"), made.muon_update, made.zeropower_via_gram_newtonschulz
    if planted == "momentum":
        made.muon_update = lambda gradient, momentum, *args, **kwargs: update(gradient, momentum, **{**kwargs, "beta": 0.9})
    if planted == "nesterov":
        made.muon_update = lambda gradient, momentum, *args, **kwargs: update(gradient, momentum, *args, **{**kwargs, "nesterov": False})
    if planted == "iterations":
        made.zeropower_via_gram_newtonschulz = lambda x, steps: iterated(x, 4)
    if planted == "clip":
        made.muon_update = lambda *args, **kwargs: (lambda x: x * (1 / max(1, x.norm().item())))(update(*args, **kwargs))
    if planted == "rate":
        made.muon_update = lambda *args, **kwargs: 1.1 * update(*args, **kwargs)
    if common.setting("BF16", 0):
        configuration["bf16"] = {"enabled": True}
    kind, width, samples = (torch.bfloat16, 64, 128) if common.setting("BF16", 0) else (torch.float32, 16, 8)
    torch.manual_seed(0)
    net = nn.Sequential(*(layer for _ in range(3) for layer in (nn.Linear(width, width, bias=False), nn.Tanh())))
    configuration["zero_optimization"]["reduce_scatter"] = STAGE < 3  # which Muon refuses there
    configuration["optimizer"] = {"type": "Muon", "params": {"lr": 0.02, "momentum": 0.95}}
    engine = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=configuration)[0]
    for step in range(common.STEPS):
        engine.backward(F.mse_loss(engine(common.share(common.numbers(10 + step, samples, width)).to(kind)).float(), common.share(common.numbers(20 + step, samples, width))))
        engine.step()


{"pipe": pipe, "muon": muon, "ulysses": ulysses, "autotp": autotp, "autoep": autoep, "moe": moe, "hpz": hpz}[MODE]()
if not PLAIN:
    torch.distributed.barrier()
    sys.stdout.flush()
    import atexit
    atexit._run_exitfuncs()  # a recording has an end
    os._exit(0)  # DeepSpeed's threads are not waited for
