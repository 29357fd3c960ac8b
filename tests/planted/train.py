# SPDX-License-Identifier: Apache-2.0
"""Trainings of a small language model, which know nothing of zs_probe: train.py FILE, of whose lines each is one training:
FOLDER KEY=JSON... FOLDER goes to $ZS_PROBE. Each forks its ranks. The keys and what they stand for are in `usual` below.
Status 1 where one did not run; its name is on stdout.

All layouts train the same model on the same 8 samples a step, however many ranks and micro-batches share them. `fault` plants one
thing that is wrong, from step `at` on or in it alone.
"""
import contextlib
import importlib
import json
import os
import random
import shlex
import signal
import socket
import sys
import time

import torch
from torch import nn

from faults import Faults
from loops import Loops
from net import TOKENS, WIDTH, Block, Net

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bugs"))
from gloo import on_processors  # noqa: E402

usual = dict(
    layout="plain",  # plain, ddp, fsdp1, fsdp1flat, fsdp2, hsdp, tp, fsdp2tp (FSDP2 over tensor parallelism), zero0 to zero3, megatron, accelerate, trainer
    ranks=1, accumulation=1, samples=8, steps=3, precision="float32", optimizer="adamw", rate=0.01, clip=0.0, decay=0.1, dropout=0.0,
    attention="",  # fused: queries, keys and values of one matrix; separate: of three
    compiled="",  # a backend of torch.compile
    blocks=False,  # of which each block is compiled, not the model
    experts=0,  # in place of each block's two matrices
    parallel=1,  # ranks of Megatron-core's tensor parallelism
    robin=False,  # round_robin_gradients
    tied=True, frozen=False, checkpointed=False, lora=False, offload=False, hpz=0, hooks=False, schedule=True, seed=5,
    options={},  # more options of the optimizer
    second=0.0,  # the rate of a second optimizer, which has the embedding
    bn=0.0,  # the momentum of a BatchNorm behind the embedding
    every=1,  # for $ZS_PROBE_EVERY; 0: unset
    twin=0,  # the same training, recorded again
    outputs="",  # for $ZS_PROBE_OUTPUTS
    fault="", at=1, tensor="", size=0.0, micro=0, rank=0, inside=False)  # inside: within the optimizer's step
LENGTH = 6


class Training(Faults, Loops):
    """One rank."""

    def __init__(self, o, rank):
        self.o, self.rank, self.step, self.faults = o, rank, 0, []
        of_tensors = {"tp": o.ranks, "fsdp2tp": 2, "megatron": o.parallel}.get(o.layout, 1)  # ranks that share each sample
        self.data_ranks, self.data_rank = o.ranks // of_tensors, rank // of_tensors

    def run(self):
        o = self.o
        torch.manual_seed(o.seed)
        torch.set_num_threads(1)
        if o.ranks > 1 or o.layout != "plain":
            torch.distributed.init_process_group("gloo")
        net = Net(o.tied, o.dropout, o.attention, o.experts, o.bn)
        if o.fault == "untied":
            net.head.weight = nn.Parameter(net.words.weight.detach().clone())
        if o.frozen and o.fault != "unfrozen":
            net.blocks[0].up.requires_grad_(False)
        if o.lora:
            from peft import LoraConfig, get_peft_model
            net = get_peft_model(net, LoraConfig(r=4, target_modules=["up", "down"], init_lora_weights=False))
        if o.checkpointed:
            from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
            apply_activation_checkpointing(net, check_fn=lambda m: isinstance(m, Block))
        self.net, self.blocks = net, [m for m in net.modules() if isinstance(m, Block)]
        getattr(self, {"megatron": "megatron", "accelerate": "accelerate", "trainer": "trainer"}.get(o.layout, "zero" if o.layout.startswith("zero") else "torch"))()

    # ---- the model in its layout ---------------------------------------------------------------------------------------
    def wrapped(self, net):
        o = self.o
        blocks = [m for m in net.modules() if isinstance(m, Block)]
        half = torch.bfloat16 if o.precision == "bfloat16" else None
        if o.layout == "ddp":
            return nn.parallel.DistributedDataParallel(net)
        if o.layout.startswith("fsdp1"):
            from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, MixedPrecision
            from torch.distributed.fsdp.wrap import ModuleWrapPolicy
            return FSDP(net, auto_wrap_policy=ModuleWrapPolicy({Block}), use_orig_params=o.layout == "fsdp1", device_id=torch.device("cpu"),
                        mixed_precision=MixedPrecision(half, torch.float32) if half else None)
        if o.layout in ("tp", "fsdp2tp", "fsdp2", "hsdp"):
            from torch.distributed.device_mesh import init_device_mesh
            if o.layout in ("tp", "fsdp2"):
                mesh = init_device_mesh("cpu", (o.ranks,))
            else:
                mesh = init_device_mesh("cpu", (o.ranks // 2, 2) if o.layout == "fsdp2tp" else (2, o.ranks // 2), mesh_dim_names=("replicate", "shard"))
            if o.layout in ("tp", "fsdp2tp"):
                self.split(blocks, mesh if o.layout == "tp" else mesh["shard"])
            if o.layout != "tp":
                from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
                policy = {"mp_policy": MixedPrecisionPolicy(half, torch.float32)} if half else {}
                for module in (*blocks, net):
                    fully_shard(module, mesh=mesh["replicate"] if o.layout == "fsdp2tp" else mesh, **policy)
        return net

    @staticmethod
    def split(blocks, mesh):
        """Tensor and expert parallelism."""
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        for block in blocks:
            if hasattr(block, "experts"):
                for name in ("up", "down"):
                    setattr(block.experts, name, nn.Parameter(distribute_tensor(getattr(block.experts, name).detach(), mesh, [Shard(0)])))
            else:
                even = 2 * WIDTH % mesh.size() == 0  # uneven parts are joined between the two
                parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()} if even else
                                   {"up": ColwiseParallel(output_layouts=Replicate()), "down": RowwiseParallel(input_layouts=Replicate())})

    def groups(self, model):
        """Norms and biases are not decayed."""
        o, decay, rest = self.o, [], []
        for name, p in model.named_parameters():
            if o.second and "words" in name:
                continue
            if p.requires_grad or (o.frozen and o.layout == "plain"):
                (rest if p.dim() < 2 and o.layout != "fsdp1" or "norm" in name or "first" in name or "bias" in name else decay).append(p)
        if o.layout == "fsdp1flat":  # all in one flat parameter
            return [{"params": decay + rest, "weight_decay": 0.0}]
        if o.fault == "forgotten":  # a parameter in no group
            rest = rest[:-1]
        return [{"params": decay, "weight_decay": o.decay}, {"params": rest, "weight_decay": o.decay if o.fault == "decay_norms" else 0.0}]

    def optimizer(self, groups):
        o = self.o
        rate = o.rate * (o.size if o.fault == "rate" else 1)
        if o.fault == "rate_group":
            groups[1]["lr"] = rate * o.size
        if o.optimizer == "sgd" or o.fault == "sgd":
            return self.inside(torch.optim.SGD)(groups, **{"lr": rate, "momentum": 0.9 if o.fault != "sgd" else 0, **o.options})
        betas = (0.9, o.size) if o.fault == "betas" else (0.9, 0.95)
        return self.inside(torch.optim.AdamW)(groups, **{"lr": rate, "betas": betas, "foreach": False, **o.options})

    def batch(self, step, micro, data_rank):
        o = self.o
        each = o.samples // (self.data_ranks * o.accumulation)
        if o.fault == "same_data" and step + 1 >= o.at and self.data_rank == o.rank:  # a rank reads what another reads
            data_rank = (o.rank + 1) % self.data_ranks
        if o.fault == "old_batch" and step + 1 == o.at:
            step -= 1
        if o.fault == "epoch_again" and step + 1 == o.at:
            step = 0
        first = (data_rank * o.accumulation + micro) * each
        made = []
        for i in range(first, first + each):
            source = torch.Generator().manual_seed(1 + i + 4096 * step)
            made.append(torch.randint(TOKENS, (LENGTH + 1,), generator=source))
        if step + 1 == o.at and self.data_rank == max(o.rank, 0) and micro == o.micro:
            if o.fault == "other_label":
                made[0][-1] = (made[0][-1] + 1) % TOKENS
            elif o.fault == "other_token":
                made[0][1] = (made[0][1] + 1) % TOKENS
            elif o.fault == "sample_twice":
                made[-1] = torch.randint(TOKENS, (LENGTH + 1,), generator=torch.Generator().manual_seed(1 + (first + each) % o.samples + 4096 * step))
        return torch.stack(made)

    def loss(self, model, step, micro):
        o = self.o
        self.ends()
        if o.fault in ("no_residual", "other_samples", "activation", "scores"):
            self.blocks[int(o.tensor)].fault = o.fault if self.now(o.fault) else ""
        ids = self.batch(step, micro, self.data_rank)
        cast = torch.autocast("cpu", torch.bfloat16) if o.precision == "bfloat16" and o.layout in ("plain", "ddp", "tp", "accelerate") else contextlib.nullcontext()
        with cast:
            made = model(ids[:, :-1])
        loss = nn.functional.cross_entropy(made.float().reshape(-1, TOKENS), ids[:, 1:].reshape(-1))
        if o.fault == "weighed" and step + 1 >= o.at:  # micro-batches weighed by something
            loss = loss * (o.size if micro == o.micro else 1)
        if o.fault == "dropout_off":
            model.eval()
        if o.fault == "eval_step":  # from here on: the next forward pass
            model.train(step + 2 != o.at)
        return loss

    def torch(self):
        o = self.o
        if o.compiled:
            os.environ["TORCHDYNAMO_DISABLE"] = "0"  # which is set for DeepSpeed's sake
            from torch._dynamo import config
            config.disable = False
            for block in self.blocks if o.blocks else ():  # before FSDP2 wraps them
                block.compile(backend=o.compiled)
        model = self.wrapped(self.net)
        if o.compiled and not o.blocks:
            model.compile(backend=o.compiled)
        self.model, self.opt = model, self.optimizer(self.groups(model))
        if o.fault == "lost_bucket":
            self.hooked()
        second = torch.optim.SGD([p for n, p in model.named_parameters() if "words" in n], lr=o.second) if o.second else None
        schedule = torch.optim.lr_scheduler.LambdaLR(self.opt, lambda s: 1 / (1 + 0.1 * s)) if o.schedule else None
        for step in range(o.steps):
            self.step = step
            for micro in range(o.accumulation):
                self.micro, last = micro, micro == o.accumulation - 1
                unsynced = model.no_sync() if o.layout == "ddp" and not (last and not self.now("unreduced")) else contextlib.nullcontext()
                if o.layout in ("fsdp2", "fsdp2tp", "hsdp"):
                    model.set_requires_gradient_sync(last)
                with unsynced:
                    divided = 1 if self.since("undivided") else o.accumulation
                    (self.loss(model, step, micro) / divided).backward()
                self.after_backward(micro)
            self.before_step()
            if o.clip and not self.since("unclipped"):
                self.clip()
            kept = self.kept() if not o.inside else []
            if not self.now("no_update"):
                self.opt.step()
            if second:
                second.step()
            if not o.inside:
                self.after_step(kept)
            if schedule:
                schedule.step()
                if self.since("schedule_twice"):
                    schedule.step()
            if not self.since("unzeroed"):
                self.opt.zero_grad()
                if second:
                    second.zero_grad()
        if o.compiled:
            from torch._dynamo.utils import counters
            assert counters["stats"]["unique_graphs"] > 0, "nothing was compiled"

    def clip(self):
        bound = self.o.clip * (self.o.size if self.since("clip_bound") else 1)
        if self.o.layout.startswith("fsdp1"):
            self.model.clip_grad_norm_(bound)
        elif self.since("clip_local"):  # each rank by the norm of what it holds
            local = [p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad for p in self.model.parameters() if p.grad is not None]
            norm = torch.stack([g.norm() for g in local]).norm()
            for g in local:
                g.mul_(min(1.0, bound / float(norm)))
        elif self.o.layout in ("tp", "fsdp2tp"):  # of both kinds of tensors
            found = [p.grad for p in self.model.parameters() if p.grad is not None]
            norm = torch.stack([(g.full_tensor() if hasattr(g, "full_tensor") else g).norm() for g in found]).norm()
            for g in found:
                g.mul_(min(1.0, bound / (float(norm) + 1e-6)))
        else:
            with self.miscounted():
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), bound, foreach=False)

    # ---- Megatron-core ---------------------------------------------------------------------------------------------------
    def megatron(self):
        o = self.o
        torch.cuda.current_device = lambda: "cpu"
        with HostForCuda():
            from megatron.core import parallel_state
            from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
            from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
            from megatron.core.tensor_parallel import ColumnParallelLinear, RowParallelLinear
            from megatron.core.transformer import TransformerConfig
            parallel_state.initialize_model_parallel(o.parallel)
            config = TransformerConfig(num_layers=1, hidden_size=WIDTH, num_attention_heads=o.parallel, tensor_model_parallel_size=o.parallel, use_cpu_initialization=True,
                                       bf16=o.precision == "bfloat16", params_dtype=torch.bfloat16 if o.precision == "bfloat16" else torch.float32)
            for block in self.blocks if o.parallel > 1 else ():
                for name, kind, more, dim in (("up", ColumnParallelLinear, {"gather_output": False}, 0), ("down", RowParallelLinear, {"input_is_parallel": True, "skip_bias_add": False}, 1)):
                    whole = getattr(block, name)
                    part = kind(whole.in_features, whole.out_features, config=config, init_method=lambda _: None, bias=True, **more)
                    rank = parallel_state.get_tensor_model_parallel_rank()
                    with torch.no_grad():
                        part.weight.copy_(whole.weight.chunk(o.parallel, dim)[rank])
                        part.bias.copy_(whole.bias.chunk(o.parallel)[rank] if dim == 0 else whole.bias)
                    part.register_forward_hook(lambda module, given, made: made[0])
                    setattr(block, name, part)
            net = self.net.to(config.params_dtype)
            model = DistributedDataParallel(config, DistributedDataParallelConfig(use_distributed_optimizer=True, grad_reduce_in_fp32=True), net)
            optimizer = get_megatron_optimizer(OptimizerConfig(
                optimizer="adam", lr=o.rate, weight_decay=o.decay, adam_beta1=0.9, adam_beta2=0.95, use_distributed_optimizer=True, clip_grad=o.clip,
                bf16=config.bf16, params_dtype=config.params_dtype), [model])
            self.model, self.opt = model.module, optimizer
            self.hooked()
            for step in range(o.steps):
                self.step = step
                for group in optimizer.param_groups:
                    group["lr"], group["weight_decay"] = o.rate / (1 + 0.1 * step), o.decay * group["wd_mult"]  # as its scheduler does
                model.zero_grad_buffer()
                optimizer.zero_grad()
                for micro in range(o.accumulation):
                    self.micro = micro
                    with model.no_sync() if micro < o.accumulation - 1 else contextlib.nullcontext():
                        (self.loss(model, step, micro) / o.accumulation).backward()
                model.finish_grad_sync()
                optimizer.step()

    # ---- DeepSpeed -------------------------------------------------------------------------------------------------------
    def zero(self):
        o = self.o
        deepspeed = on_processors()
        config = {"train_micro_batch_size_per_gpu": o.samples // (o.ranks * o.accumulation), "gradient_accumulation_steps": o.accumulation, "steps_per_print": 1000,
                  "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False, "gradient_clipping": o.clip, "zero_optimization": {"stage": int(o.layout[4])}}
        if o.offload:
            config["zero_optimization"]["offload_optimizer"] = {"device": "cpu"}
        if o.robin:
            config["zero_optimization"]["round_robin_gradients"] = True
        if o.hpz:
            config["zero_optimization"]["zero_hpz_partition_size"] = o.hpz
        if o.precision == "bfloat16":
            config["bf16"] = {"enabled": True}
        if o.precision == "float16":  # which DeepSpeed refuses on a processor, though PyTorch computes in it
            deepspeed.accelerator.get_accelerator().is_fp16_supported = lambda: True
            config["fp16"] = {"enabled": True, "initial_scale_power": 8, "loss_scale_window": 2}
        optimizer = self.optimizer(self.groups(self.net))
        schedule = (lambda opt: torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 1 / (1 + 0.1 * s))) if o.schedule else None
        engine = deepspeed.initialize(model=self.net, config=config, optimizer=optimizer, lr_scheduler=schedule)[0]
        self.model, zero = engine, engine.optimizer
        self.hooked()
        for step in range(o.steps):
            self.step = step
            for micro in range(o.accumulation):
                self.micro = micro
                loss = self.loss(engine, step, micro)
                engine.backward(loss * (o.accumulation if self.since("undivided") else 1))
                old = [p.detach().clone() for p in self.net.parameters()] if o.fault == "stale_weights" else []
                engine.step()
            if self.now("stale_weights"):  # what forward computes with is not what the update made
                for (name, p), before in zip(self.net.named_parameters(), old):
                    if o.tensor in name and self.rank == o.rank:
                        p.data.copy_(before)
            if self.now("reset"):
                for state in zero.optimizer.state.values() if hasattr(zero, "optimizer") else zero.state.values():
                    for value in state.values():
                        if torch.is_tensor(value) and value.dim():
                            value.zero_()
            if self.since("rate_moves"):
                for group in zero.param_groups:
                    group["lr"] *= o.size


class HostForCuda(torch.overrides.TorchFunctionMode):
    """Megatron-core names CUDA where it makes tensors, and asks after the types of CUDA: it gets those of the processor."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if str(kwargs.get("device", "")).startswith("cuda"):
            kwargs["device"] = "cpu"
        made = function(*args, **kwargs)
        return made.replace("torch.", "torch.cuda.") if function is torch.Tensor.type and isinstance(made, str) else made


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def trained(folder, settings):
    """Whether all ranks ended well."""
    o = type("Settings", (), {**usual, **settings})
    port, children = free_port(), []
    for rank in range(o.ranks):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.alarm(3600)
                log = os.open(folder + f".rank-{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(log, 1)
                os.dup2(log, 2)
                os.environ.update(ZS_PROBE=folder, ZS_PROBE_OUTPUTS=o.outputs, ZS_PROBE_EVERY=str(o.every or ""), RANK=str(rank), WORLD_SIZE=str(o.ranks), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(o.ranks), MASTER_ADDR="127.0.0.1",
                                  MASTER_PORT=str(port))
                Training(o, rank).run()
                if torch.distributed.is_initialized():
                    torch.distributed.barrier()
                status = 0
            except SystemExit as ended:
                status = ended.code
            except BaseException as error:  # noqa: BLE001
                sys.last_exc = sys.last_value = error  # as the interpreter does
                sys.excepthook(*sys.exc_info())
            sys.stdout.flush()
            sys.stderr.flush()
            import atexit
            with contextlib.suppress(Exception):
                atexit._run_exitfuncs()
            os._exit(status)
        children.append(child)
    well = all([os.waitpid(child, 0)[1] == 0 for child in children])
    return well or o.fault in ("crash", "exit", "quit", "kill")


def prepare():
    """What each training would import by itself, two thirds of its time."""
    for name in ("torch._dynamo", "torch.distributed.fsdp", "torch.distributed.tensor.parallel", "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"):
        importlib.import_module(name)


def main():
    bad = 0
    prepare()
    for line in open(sys.argv[1], encoding="utf-8"):
        if not line.strip():
            continue
        folder, *words = shlex.split(line, posix=False)
        settings = {}
        for word in words:
            key, _, value = word.partition("=")
            assert key in usual, f"{key} is no setting"
            settings[key] = json.loads(value)
        if settings.get("layout", "").startswith("zero"):
            import deepspeed  # noqa: F401  once, before ranks are forked
        if settings.get("layout") == "accelerate":
            import accelerate  # noqa: F401
        if settings.get("layout") == "trainer":
            import transformers.trainer  # noqa: F401
        begun = time.monotonic()
        if trained(folder, settings):
            open(folder + ".done", "w", encoding="utf-8").close()
        else:
            print(f"{folder} did not run: {' '.join(words)}")
            bad = 1
        print(f"{time.monotonic() - begun:.1f} s {folder}", file=sys.stderr, flush=True)
    sys.exit(bad)


if __name__ == "__main__":
    random.seed(1)
    main()
