#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peers of bench/gpu: training steps in PyTorch, DeepSpeed, transformers and peft, as their users set them for speed.

gpu.py NAME [--model gpt2] [--layers N] [--batch 32] [--length 1024] [--accumulation 1] [--steps 25] [--turns 1] [--document 0] [--profile FOLDER]: one rank of it.
gpu.py choose FAMILY...: a family is its models, "NAME=CONFIG.json" joined by commas; a line "NAME LAYERS BATCH" of each.
Several ranks are started by torchrun. Rank 0 prints a line a step, "step SECONDS"; then "peak BYTES" (of the rank that holds most) and
"version TEXT". --profile: the trace of the last 4 steps by PyTorch's profiler in FOLDER, and "alloc_mem: BYTES peak_mem: BYTES".

  eager compile deterministic   bfloat16 weights; the last: torch.compile with deterministic algorithms
  autocast                      float32 weights, bfloat16 products, torch.compile
  tf32 fp32                     float32 weights, torch.compile
  ddp                           autocast under DistributedDataParallel
  fsdp2                         fully_shard of every block, bfloat16 parameters, each block by torch.compile
  llama llama-fp8               the same of a Llama, with float32 masters and reductions; float8 by torchao, tensorwise,
                                with gathers in float8; llama-fp8-rowwise; llama-8bit, with torchao's AdamW8bit; llama-long,
                                whose backward makes blocks, and the logits of 8192 tokens at a time, again;
                                llama-long-selective, which keeps the results of attention; llama-long-shared, whose samples
                                all ranks share (PyTorch's context_parallel)
  llama-autocast                a Llama in float32 weights and bfloat16 products, torch.compile of the whole, on several ranks
                                under DistributedDataParallel
  zero1 zero2 zero3             DeepSpeed, bfloat16; also zero1-deepcompile, zero3-deepcompile
  transformers                  transformers' model of the config.json that --model names, in float32 weights and bfloat16
                                products, torch.compile of the whole; transformers-flex, whose attention is FlexAttention;
                                transformers-fsdp2, each block by torch.compile under fully_shard
  peft peft-again               bfloat16 weights and peft's adapters of --rank R on --targets, torch.compile of the whole; -again:
                                with gradient checkpointing; peft-4bit, peft-4bit-eager: over matrices of blocks in NF4 with nested
                                scales by bitsandbytes (QLoRA), compiled or not; peft-4bit-again, peft-4bit-eager-again; peft-fp8,
                                peft-fp8-again: products of those matrices in float8 by torchao, tensorwise
  scatter                       reduce_scatter_tensor alone: "scatter MIBIBYTES SECONDS"
"""
import argparse
import contextlib
import json
import os
import statistics
import sys
import time

import llama
import torch
import torch.distributed as dist
from card import Card
from gpt2 import GPT2
from llama import SIZES, Llama
from torch import nn

CUDA = torch.cuda.is_available()
VOCABULARY = 50304  # a multiple of 64, as everybody pads it
RANK, RANKS, LOCAL = (int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0)))
CARD = Card(os.environ.get("ZS_BENCH_CARD"))


def wait():
    if CUDA:
        torch.cuda.synchronize()


def say(*words):
    if RANK == 0:
        print(*words, flush=True)


def deepspeed_step(model, name, batch):
    import deepspeed

    stage, deepcompile = int(name[4]), name.endswith("-deepcompile")
    settings = {
        "train_micro_batch_size_per_gpu": batch,
        "gradient_clipping": 1.0,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": stage, "overlap_comm": True, "contiguous_gradients": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
        "compile": {"deepcompile": deepcompile},
    }
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=settings)
    if deepcompile:
        engine.compile()

    def step(tokens, targets):
        loss = engine(tokens, targets)
        engine.backward(loss)
        engine.step()
        return loss

    return step, f"DeepSpeed {deepspeed.__version__}, PyTorch {torch.__version__}"


def ddp(model):
    return nn.parallel.DistributedDataParallel(model, device_ids=[LOCAL] if CUDA else None, gradient_as_bucket_view=True)


def shard(model, reduced, whole_graphs=False):
    """fully_shard of each block, compiled, and of the rest; gradients are summed in the dtype `reduced`."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduced)
    for block in model.blocks:
        block.compile(fullgraph=whole_graphs)
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)


def torch_step(name, model, device):
    low = torch.autocast(device.type, torch.bfloat16, enabled=name in ("autocast", "ddp"))
    forward = model
    if name in ("eager", "compile", "deterministic"):
        model.to(torch.bfloat16)
    if name == "fsdp2":
        shard(model, torch.bfloat16)
    elif name == "ddp":
        forward = torch.compile(ddp(model))
    elif name != "eager":
        forward = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def step(tokens, targets):
        optimizer.zero_grad(set_to_none=True)
        with low:
            loss = forward(tokens, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step, f"PyTorch {torch.__version__}"


def llama_step(model, name, accumulation, device):
    version, after = f"PyTorch {torch.__version__}", None
    if name.startswith("llama-fp8"):
        import torchao
        from torchao.float8 import Float8LinearConfig, convert_to_float8_training, precompute_float8_dynamic_scale_for_fsdp

        by_row = name == "llama-fp8-rowwise"
        config = Float8LinearConfig.from_recipe_name("rowwise") if by_row else Float8LinearConfig(enable_fsdp_float8_all_gather=True)
        convert_to_float8_training(model, config=config, module_filter_fn=lambda _, where: where != "head")
        version, after = f"torchao {torchao.__version__}, {version}", None if by_row else precompute_float8_dynamic_scale_for_fsdp
    if name.startswith("llama-long"):
        model.make_again(8192, selective=name == "llama-long-selective")
    shared = lambda *_: contextlib.nullcontext()
    if name == "llama-long-shared":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.experimental import context_parallel

        llama.attend = torch.compiler.disable(llama.attend)
        mesh = init_device_mesh(device.type, (RANKS,))

        def shared(tokens, targets):
            """In which a rank has its part of the tokens, and attention sees all of them."""
            return context_parallel(mesh, buffers=[tokens, targets, *model.angles], buffer_seq_dims=[1, 1, 0, 0], no_restore_buffers={tokens, targets})

    autocast = name == "llama-autocast"
    if not autocast:
        shard(model, torch.float32, whole_graphs=not name.startswith("llama-long"))
    model.begin(device)
    if autocast and RANKS > 1:
        model = ddp(model)
    forward = torch.compile(model) if autocast else model
    if name == "llama-8bit":
        import torchao
        from torchao.optim import AdamW8bit

        version = f"torchao {torchao.__version__}, {version}"
        optimizer = AdamW8bit(model.parameters(), lr=3e-4, weight_decay=0.1)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=True)

    def micro_batch(last):
        """In which the gradients of all ranks meet if it is the last one of a step."""
        if not autocast:
            model.set_requires_gradient_sync(last)
        elif RANKS > 1 and not last:
            return model.no_sync()
        return contextlib.nullcontext()

    low = torch.autocast(device.type, torch.bfloat16, enabled=autocast)

    def step(tokens, targets):
        for micro in range(accumulation):
            with micro_batch(micro + 1 == accumulation), shared(tokens, targets):
                with low:
                    loss = forward(tokens, targets) / accumulation
                loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if after:
            after(model)
        return loss

    return step, version


def transformers_model(config, layers=None, attention=None):
    """Of a dictionary as in config.json, made on the default device; with so many layers, if any."""
    import transformers

    config = dict(config)
    if layers:
        config["num_hidden_layers"] = layers
        if config.get("layer_types"):
            config["layer_types"] = config["layer_types"][:layers]
    kind = transformers.AutoModelForImageClassification if "image_size" in config else transformers.AutoModelForCausalLM
    config = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(config)
    config.use_cache = False
    return kind.from_config(config, attn_implementation=attention, dtype=torch.get_default_dtype())


def in_4_bits(model):
    """Replaces the matrices of blocks by bitsandbytes' of 4 bits; returns its version."""
    import bitsandbytes

    for module in list(model.modules()):
        for name, one in list(module.named_children()):
            if isinstance(one, nn.Linear) and one is not model.get_output_embeddings():
                made = bitsandbytes.nn.Linear4bit(one.in_features, one.out_features, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4", device="meta")
                made.weight = bitsandbytes.nn.Params4bit(one.weight.data, requires_grad=False, compress_statistics=True, quant_type="nf4", module=made)
                setattr(module, name, made.to(one.weight.device))
    model.is_loaded_in_4bit = True
    if CUDA:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    return bitsandbytes.__version__


def in_8_bits(model):
    """Lets torchao multiply the matrices of blocks in float8; returns its version."""
    import torchao
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training

    head = model.get_output_embeddings()
    convert_to_float8_training(model, config=Float8LinearConfig(emulate=not CUDA), module_filter_fn=lambda module, _: module is not head)
    return torchao.__version__


def transformers_step(name, args, device):
    import transformers

    version = f"transformers {transformers.__version__}, PyTorch {torch.__version__}"
    config = json.load(open(args.model))
    # PyTorch's own attention has no caps of scores.
    attention = "flex_attention" if name.endswith("-flex") else "eager" if config.get("attn_logit_softcapping") else None
    adapts, sharded = name.startswith("peft"), name == "transformers-fsdp2"
    torch.set_default_dtype(torch.bfloat16 if adapts else torch.float32)
    with device:
        model = transformers_model(config, args.layers, attention)
    model.train()
    if adapts:
        import peft

        version = f"peft {peft.__version__}, {version}"
        if name.startswith("peft-4bit"):
            version = f"bitsandbytes {in_4_bits(model)}, {version}"
        elif name.startswith("peft-fp8"):
            version = f"torchao {in_8_bits(model)}, {version}"
        if name.endswith("-again"):
            model.gradient_checkpointing_enable({"use_reentrant": False})
        targets = args.targets if args.targets == "all-linear" else args.targets.split(",")
        model = peft.get_peft_model(model, peft.LoraConfig(r=args.rank, lora_alpha=2 * args.rank, target_modules=targets, lora_dropout=0.0))
    if sharded:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        layers = next(part for part in model.modules() if isinstance(part, nn.ModuleList))
        for layer in layers:
            layer.compile()
            fully_shard(layer, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
    forward = model if sharded or "-eager" in name else torch.compile(model)
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=3e-4, weight_decay=0.1, fused=True)
    low = torch.autocast(device.type, torch.bfloat16, enabled=not sharded)
    side = config.get("image_size")
    pictures = torch.randn(args.batch, 3, side, side, device=device) if side else None

    def step(tokens, _):
        if side:
            given = {"pixel_values": pictures, "labels": tokens[:, 0] % model.config.num_labels}
        else:
            given = {"input_ids": tokens, "labels": tokens}
        with low:
            loss = forward(**given).loss
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step, version


def choose(families):
    """Of each family the model that people train on one card of 80 GB: the last whose state takes little more than half of it, else
    the first, with as many layers as do; with 4 samples, or 2 where the logits of 4 would not fit."""
    card, length = 80e9, 2048
    for family in families:
        best = None
        for one in family.split(","):
            name, _, path = one.partition("=")
            config = json.load(open(path))
            whole = config["num_hidden_layers"]
            counts = []
            for layers in (1, 2):
                with torch.device("meta"):
                    counts.append(sum(each.numel() for each in transformers_model(config, layers).parameters()))
            each = counts[1] - counts[0]
            fit = min(whole, max(1, int((0.55 * card / 16 - counts[0]) / each) + 1))
            if best is None or fit == whole:
                state = 16 * (counts[0] + (fit - 1) * each)
                logits = 24 * 4 * length * config.get("vocab_size", 0)
                batch = 64 if "image_size" in config else 4 if state + logits < 0.95 * card else 2
                best = name, fit if fit < whole else 0, batch
        print(*best, flush=True)


def scatter(device):
    for mebibytes in (1, 16, 64, 256, 1024) if CUDA else (1,):
        count = (mebibytes << 20) // 4
        full, mine = torch.ones(count, device=device), torch.empty(count // RANKS, device=device)
        rounds = 5 if mebibytes >= 256 else 20
        taken = []
        for _ in range(6):  # the first warms up
            wait()
            dist.barrier()
            begin = time.perf_counter()
            for _ in range(rounds):
                dist.reduce_scatter_tensor(mine, full)
            wait()
            taken.append((time.perf_counter() - begin) / rounds)
        say("scatter", mebibytes, statistics.median(taken[1:]))
        del full, mine


def profiler(args):
    """Traces the last 4 steps, or is None."""
    if not args.profile:
        return None
    from torch.profiler import profile, schedule

    os.makedirs(args.profile, exist_ok=True)
    return profile(schedule=schedule(wait=max(args.steps - 5, 0), warmup=1, active=4), on_trace_ready=lambda p: p.export_chrome_trace(f"{args.profile}/rank-{RANK}.json.gz"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--model", default="gpt2")
    parser.add_argument("--layers", type=int, help="of a Llama, in place of all")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--accumulation", type=int, default=1, help="micro-batches of a step, of a Llama")
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--turns", type=int, default=1, help="between which other benches that share the GPU have theirs")
    parser.add_argument("--document", type=int, default=0, help="tokens of each document of a sample, of a Llama; 0: a sample is one")
    parser.add_argument("--rank", type=int, default=16, help="of adapters")
    parser.add_argument("--targets", default="all-linear", help="modules that have adapters, joined by commas")
    parser.add_argument("--profile", metavar="FOLDER", help="of a trace of the last steps")
    if sys.argv[1:2] == ["choose"]:
        return choose(sys.argv[2:])
    args = parser.parse_args()
    foreign = args.name.startswith(("transformers", "peft"))
    device = torch.device("cuda", LOCAL) if CUDA else torch.device("cpu")
    if CUDA:
        torch.cuda.set_device(device)
    if RANKS > 1 or args.name.startswith("llama") or args.name == "transformers-fsdp2":
        os.environ.setdefault("MASTER_ADDR", "localhost")
        os.environ.setdefault("MASTER_PORT", "29511")
        dist.init_process_group("nccl" if CUDA else "gloo", rank=RANK, world_size=RANKS, device_id=device if CUDA else None)
    torch.manual_seed(1)
    if args.name == "deterministic":
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False
    torch.set_float32_matmul_precision("high" if args.name == "tf32" or foreign else "highest")
    if args.name == "scatter":
        scatter(device)
    else:
        if not foreign:
            with torch.device("meta") if args.model in SIZES else device:
                model = Llama(args.model, args.length, args.layers, args.document) if args.model in SIZES else GPT2(args.model, VOCABULARY)
        if foreign:
            step, version = transformers_step(args.name, args, device)
        elif args.model in SIZES:
            step, version = llama_step(model, args.name, args.accumulation, device)
        elif args.name.startswith("zero"):
            step, version = deepspeed_step(model, args.name, args.batch)
        else:
            step, version = torch_step(args.name, model, device)
        text = torch.randint(0, 256, (args.batch, args.length + 1), device=device)
        if CARD.folder:
            CARD.take() if "eager" in args.name else CARD.wait_in_graphs()
        tracer = profiler(args)
        with tracer or contextlib.nullcontext():
            for number in range(args.turns * args.steps):
                turn, number = divmod(number, args.steps)
                if number == 0 and turn > 0:
                    CARD.let_others()
                if number == min(5, args.steps // 2):
                    CARD.stop_others()
                wait()
                begin = time.perf_counter()
                step(text[:, :-1].contiguous(), text[:, 1:].contiguous()).item()
                wait()
                say("step", time.perf_counter() - begin)
                if tracer:
                    tracer.step()
        if tracer and CUDA:
            say(f"alloc_mem: {torch.cuda.memory_allocated()} peak_mem: {torch.cuda.max_memory_allocated()}")
        peak = torch.tensor([float(torch.cuda.max_memory_allocated() if CUDA else 0)], device=device)
        if RANKS > 1:
            dist.all_reduce(peak, dist.ReduceOp.MAX)
        say("peak", int(peak.item()))
        say("version", version)
    if dist.is_initialized():
        dist.destroy_process_group()


main()
