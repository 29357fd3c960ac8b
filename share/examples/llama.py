# SPDX-License-Identifier: Apache-2.0
"""Trains a Llama of Hugging Face from random weights under DeepSpeed, FSDP2 or DDP: torchrun llama.py --backend deepspeed --zero_stage 3

It knows nothing of zs. Ranks come from torchrun, deepspeed, accelerate or srun (RANK and its siblings); on processors they
talk by gloo. On SIGUSR1 it saves and ends with 75; --resume_from CHECKPOINT goes on.
"""
import argparse
import contextlib
import os
import resource
import signal
import sys
import time

import torch
import torch.distributed as dist
from transformers import LlamaConfig, LlamaForCausalLM


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--backend", choices=["deepspeed", "fsdp", "ddp"], default="deepspeed")
    p.add_argument("--zero_stage", type=int, choices=[0, 1, 2, 3], default=1)
    p.add_argument("--compile", action="store_true", help="torch.compile")
    p.add_argument("--compile_backend", default="inductor")
    p.add_argument("--deepcompile", action="store_true", help="DeepSpeed's passes over the compiled graph; needs GPUs and --compile")
    p.add_argument("--hidden_size", type=int, default=64)
    p.add_argument("--num_layers", type=int, default=2)
    p.add_argument("--batch_size", type=int, default=2, help="sequences of a micro-batch, on each rank")
    p.add_argument("--seq_length", type=int, default=64)
    p.add_argument("--gradient_accumulation_steps", type=int, default=1)
    p.add_argument("--learning_rate", "--lr", type=float, default=1e-3)
    p.add_argument("--max_steps", type=int, default=20)
    p.add_argument("--max_grad_norm", type=float, default=1.0)
    p.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    p.add_argument("--activation_checkpointing", "--activation-checkpointing", action="store_true")
    p.add_argument("--text", help="a file whose bytes are the tokens; without it every next token follows from the one before")
    p.add_argument("--dataset_percentage", type=float, default=100.0, help="of the text")
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--log_interval", type=int, default=1)
    p.add_argument("--output_dir", default=".", help="folder of checkpoints")
    p.add_argument("--save_steps", type=int, default=0, help="steps between checkpoints; 0: only on SIGUSR1")
    p.add_argument("--resume_from", help="a checkpoint")
    p.add_argument("--use_wandb", action="store_true")
    p.add_argument("--local_rank", type=int, help="as the launcher of DeepSpeed gives it")
    return p.parse_args()


def batch(o, text, step, micro, rank):
    """The tokens of one micro-batch: the same whatever shares them out."""
    made = torch.Generator().manual_seed(o.seed + micro + 1000 * rank + 1000003 * step)
    if text is None:
        start = torch.randint(256, (o.batch_size, 1), generator=made)
        return (start + 7 * torch.arange(o.seq_length)) % 256
    starts = torch.randint(len(text) - o.seq_length, (o.batch_size,), generator=made)
    return torch.stack([text[i:i + o.seq_length] for i in starts.tolist()])


class WithTorch:
    """DDP, or FSDP2, which shards each block; gradients are added over the micro-batches of a step."""

    def __init__(self, o, model, device):
        self.o = o
        if o.backend == "fsdp":
            from torch.distributed.fsdp import fully_shard
            for block in model.model.layers:
                fully_shard(block)
            fully_shard(model)
            self.module = self.wrapped = model
        else:
            self.module = model
            self.wrapped = torch.nn.parallel.DistributedDataParallel(model, [device] if device.type == "cuda" else None)
        self.model = torch.compile(self.wrapped, backend=o.compile_backend) if o.compile else self.wrapped
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=o.learning_rate, weight_decay=0.1)

    def micro(self, tokens, last):
        if self.o.backend == "fsdp":
            self.wrapped.set_requires_gradient_sync(last)
        with self.wrapped.no_sync() if self.o.backend == "ddp" and not last else contextlib.nullcontext():
            loss = self.model(tokens, labels=tokens).loss
            (loss / self.o.gradient_accumulation_steps).backward()
        return loss.detach()

    def step(self):
        torch.nn.utils.clip_grad_norm_(self.module.parameters(), self.o.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def _state(self):
        from torch.distributed.checkpoint.state_dict import get_state_dict
        return dict(zip(("model", "optimizer"), get_state_dict(self.module, self.optimizer)))

    def save(self, path):
        import torch.distributed.checkpoint as dcp
        dcp.save(self._state(), checkpoint_id=path)

    def load(self, path):
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import set_state_dict
        state = self._state()
        dcp.load(state, checkpoint_id=path)
        set_state_dict(self.module, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])


class WithDeepSpeed:
    def __init__(self, o, model, device):
        import deepspeed
        if device.type == "cpu":  # its own collectives would have to be compiled; gloo has them
            from deepspeed.accelerator import get_accelerator
            get_accelerator()._communication_backend_name = "gloo"
            sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
            deepspeed.init_distributed(dist_backend="gloo")
        configuration = {
            "train_micro_batch_size_per_gpu": o.batch_size, "gradient_accumulation_steps": o.gradient_accumulation_steps,
            "gradient_clipping": o.max_grad_norm, "steps_per_print": 10**9, "zero_allow_untested_optimizer": True,
            "bf16": {"enabled": o.dtype == "bfloat16"}, "zero_optimization": {"stage": o.zero_stage},
            "compile": {"deepcompile": o.deepcompile}}
        optimizer = torch.optim.AdamW(model.parameters(), lr=o.learning_rate, weight_decay=0.1)
        self.engine = deepspeed.initialize(model=model, optimizer=optimizer, config=configuration)[0]
        if o.compile:
            self.engine.compile(backend=o.compile_backend)

    def micro(self, tokens, last):
        loss = self.engine(tokens, labels=tokens).loss
        self.engine.backward(loss)
        self.engine.step()
        return loss.detach()

    def step(self):
        pass  # the engine's does it at the last micro-batch

    def save(self, path):
        self.engine.save_checkpoint(os.path.dirname(path), tag=os.path.basename(path))

    def load(self, path):
        self.engine.load_checkpoint(os.path.dirname(path), tag=os.path.basename(path))


def main():
    o = options()
    rank, ranks, local = (int(os.environ.get(name, usual)) for name, usual in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0)))
    device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.manual_seed(o.seed)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=256, hidden_size=o.hidden_size, intermediate_size=2 * o.hidden_size, num_hidden_layers=o.num_layers, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=o.seq_length, attn_implementation="eager", use_cache=False))
    model.to(device, getattr(torch, o.dtype))
    if o.activation_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    text = None
    if o.text:
        with open(o.text, "rb") as file:
            text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long()
        text = text[:max(int(len(text) * o.dataset_percentage / 100), o.seq_length + 1)]
    training = (WithDeepSpeed if o.backend == "deepspeed" else WithTorch)(o, model, device)
    stop = []
    signal.signal(signal.SIGUSR1, lambda *_: stop.append(True))
    first = 0
    if o.resume_from:
        path = os.path.abspath(o.resume_from)
        training.load(path)
        first = int(path.rsplit("_", 1)[1])
    tracker = None
    if o.use_wandb and rank == 0:
        import wandb
        tracker = wandb.init(project="llama", config=vars(o))
    begin = time.time()
    for step in range(first + 1, o.max_steps + 1):
        losses = [training.micro(batch(o, text, step, micro, rank).to(device), micro == o.gradient_accumulation_steps - 1)
                  for micro in range(o.gradient_accumulation_steps)]
        training.step()
        seen = torch.stack([torch.stack(losses).float().mean(), torch.tensor(float(bool(stop)), device=device)])
        dist.all_reduce(seen)
        loss, ends = (seen / ranks).tolist()
        if rank == 0 and step % o.log_interval == 0:
            used = torch.cuda.memory_allocated() if device.type == "cuda" else 0
            peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            print(f"Epoch 1, Step {step}, Loss: {loss!r} sync: True time: {(time.time() - begin) / o.log_interval:.6f} "
                  f"alloc_mem: {used} peak_mem: {peak}", flush=True)
            begin = time.time()
            if tracker:
                tracker.log({"loss": loss}, step=step)
        if ends > 0 or (o.save_steps and step % o.save_steps == 0):
            training.save(os.path.join(os.path.abspath(o.output_dir), f"checkpoint_{step}"))
        if ends > 0 and step < o.max_steps:
            if rank == 0:
                print(f"saved after step {step}", flush=True)
            sys.stdout.flush()
            os._exit(75)
    if tracker:
        tracker.finish()
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # without waiting for threads of libraries


if __name__ == "__main__":
    main()
