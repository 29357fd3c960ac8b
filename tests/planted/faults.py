# SPDX-License-Identifier: Apache-2.0
"""What is wrong in a training of train.py: `fault` of its settings, in step `at` alone or from it on."""
import contextlib
import os
import signal
import sys

import torch


class Faults:
    """Of a Training."""

    def now(self, fault):
        return self.o.fault == fault and self.step + 1 == self.o.at

    def since(self, fault):
        return self.o.fault == fault and self.step + 1 >= self.o.at

    def inside(self, kind):
        """The optimizer, where its own step is wrong."""
        if not self.o.inside:
            return kind
        training = self

        def step(optimizer, closure=None):
            kept = training.kept()
            kind.step(optimizer, closure)
            training.after_step(kept, optimizer)

        return type(kind.__name__, (kind,), {"step": step, "__module__": kind.__module__})

    def ends(self):
        """How a training ends that does not reach its end; `rank` -1: all ranks."""
        if self.o.rank not in (-1, self.rank):
            return
        if self.now("crash"):
            raise ValueError("boom")
        if self.now("exit"):
            sys.exit(3)
        if self.now("quit"):
            os._exit(3)
        if self.now("kill"):
            os.kill(os.getpid(), signal.SIGKILL)

    @contextlib.contextmanager
    def miscounted(self):
        """A norm in which a parameter counts twice (size 2), or not at all (0)."""
        from torch.nn.utils import clip_grad
        made, chosen = clip_grad._get_total_norm, {id(p.grad) for _, p in self.chosen()} if self.now("norm_counts") else set()

        def total(tensors, *args, **kwargs):
            tensors = [t for t in tensors for _ in range(int(self.o.size) if id(t) in chosen else 1)]
            return made(tensors, *args, **kwargs)

        clip_grad._get_total_norm = total if chosen else made
        try:
            yield
        finally:
            clip_grad._get_total_norm = made

    def chosen(self):
        """(name, parameter) whose name has `tensor` in it."""
        named = [(n.replace("_fsdp_wrapped_module.", "").replace("_checkpoint_wrapped_module.", ""), p) for n, p in self.model.named_parameters()]
        found = [(n, p) for n, p in named if p.requires_grad and self.o.tensor in n]
        assert found, f"no parameter is called {self.o.tensor}"
        return found

    def gradients(self):
        return [p.grad for _, p in self.chosen() if p.grad is not None]

    def after_backward(self, micro):
        o = self.o
        if self.now("lost_micro") and micro == o.micro:
            self.opt.zero_grad()
        if self.now("clip_micro"):  # in place of the sum
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), o.clip, foreach=False)
        if o.fault == "twice_micro" and self.step + 1 == o.at and micro == o.micro:
            (self.loss(self.model, self.step, micro) / o.accumulation).backward()

    def before_step(self):
        o, found = self.o, self.gradients()
        if self.since("scale"):
            for g in found:
                g.mul_(o.size)
        elif self.since("sign"):
            for g in found:
                g.neg_()
        elif self.now("zeroed"):
            for g in found:
                g.zero_()
        elif self.now("swapped"):
            a, b = found[0], next(g for g in found[1:] if g.shape == found[0].shape)
            held = a.clone()
            a.copy_(b)
            b.copy_(held)
        elif self.now("part_scaled"):  # a slice, as of one rank
            for g in found:
                local = g.to_local() if hasattr(g, "to_local") else g
                local.view(-1)[:local.numel() // 2].mul_(o.size)
        elif self.now("element"):
            for g in found:
                local = g.to_local() if hasattr(g, "to_local") else g
                local.view(-1)[:1].mul_(o.size)
        elif self.now("rate_behind"):  # behind the schedule's back
            self.opt.param_groups[1]["lr"] *= o.size
        elif self.now("clock"):
            for state in self.opt.state.values():
                state["step"] += 1
        elif self.now("clock_one"):
            for _, p in self.chosen():
                self.opt.state[p]["step"] += o.size
        elif self.now("wrong_group"):  # a resume gives each group the options of the other
            a, b = self.opt.param_groups
            a["weight_decay"], b["weight_decay"] = b["weight_decay"], a["weight_decay"]
        elif self.now("moved_group"):
            self.opt.param_groups[1]["params"].append(self.opt.param_groups[0]["params"].pop())
        elif o.fault == "kept_gradient":  # of one parameter, which was not set to zero
            if self.step == o.at:
                for g, old in zip(found, self.old):
                    g.add_(old)
            self.old = [g.clone() for g in found]
        elif self.now("moments_swapped"):
            held = [self.opt.state[p]["exp_avg"] for _, p in self.chosen()]
            a, b = held[0], next(t for t in held[1:] if t.shape == held[0].shape)
            kept = a.clone()
            a.copy_(b)
            b.copy_(kept)
        elif self.now("not_finite"):
            found[0].view(-1)[0] = float("nan") if not hasattr(found[0], "to_local") else 0
            found[0].mul_(float("inf") if hasattr(found[0], "to_local") else 1)
        elif o.fault == "delayed":
            held = [g.clone() for g in found]
            if self.step + 1 >= o.at and self.step:
                for g, old in zip(found, self.old):
                    g.copy_(old)
            self.old = held
        elif self.now("noise"):
            source = torch.Generator().manual_seed(3)
            for g in found:
                g.add_(o.size * g.norm() / g.numel() ** 0.5 * torch.randn(g.shape, generator=source))
        elif self.now("reset"):
            for state in self.opt.state.values():
                for value in state.values():
                    if torch.is_tensor(value) and value.dim():
                        value.zero_()
        elif self.now("reset_second"):
            for state in self.opt.state.values():
                if "exp_avg_sq" in state:
                    state["exp_avg_sq"].zero_()
        elif self.since("half_gradient"):
            for g in found:
                g.copy_(g.to(torch.float8_e4m3fn).to(g.dtype) if o.size else g.to(torch.bfloat16).to(g.dtype))

    AFTER = ("stands_still", "decayed_twice", "half_master", "stale_weights", "update_scaled", "nudged", "noised", "row_stuck", "not_decayed", "second_scaled",
             "last_scaled", "rank_behind")

    def kept(self):
        return [(p, p.detach().clone()) for _, p in self.chosen()] if self.o.fault in self.AFTER else []

    def after_step(self, kept, optimizer=None):
        o = self.o
        rates = {id(p): group["lr"] for group in (optimizer or self.opt).param_groups for p in group["params"]} if o.fault == "not_decayed" else {}
        with torch.no_grad():
            for p, old in kept:
                local, before = (t.to_local() if hasattr(t, "to_local") else t for t in (p.detach(), old))
                if self.now("rank_behind"):  # its replica is not updated
                    p.copy_(old if self.rank == o.rank else p)
                elif self.now("stands_still"):
                    p.copy_(old)
                elif self.since("decayed_twice"):
                    p.sub_(old * (o.rate * o.decay * o.size))
                elif self.since("half_master"):
                    p.copy_(p.to(torch.bfloat16).to(p.dtype))
                elif self.since("update_scaled"):
                    p.copy_(old + o.size * (p - old))
                elif self.now("nudged"):
                    p.add_(o.size * p.norm() / p.numel() ** 0.5)
                elif self.now("noised"):
                    local.add_(o.size * torch.randn(local.shape, generator=torch.Generator().manual_seed(3)))
                elif self.since("row_stuck"):
                    local.view(-1)[:32].copy_(before.reshape(-1)[:32])
                elif self.since("not_decayed"):
                    p.add_(old * (rates[id(p)] * o.decay))
                elif self.since("second_scaled"):
                    (optimizer or self.opt).state[p]["exp_avg_sq"].mul_(o.size)
                elif o.fault == "last_scaled" and self.step + 1 == o.steps:
                    p.mul_(o.size)

    def hooked(self):
        """Faults between backward and the reduction: hooks that come after those of a probe."""
        o = self.o

        def hook(gradient):
            if self.since("scale") or (self.now("twice_micro") and self.micro == o.micro):
                return gradient * (o.size or 2)
            if self.now("lost_micro") and self.micro == o.micro:
                return gradient * 0
            if self.now("lost_bucket") and self.rank == o.rank:
                return gradient * (self.micro != o.micro)
            if self.now("lost_rank") and self.rank == o.rank:
                return gradient * 0
            if self.now("doubled_rank") and self.rank == o.rank:
                return gradient * 2
            if self.since("sign"):
                return -gradient
            return None

        if o.fault in ("scale", "twice_micro", "lost_micro", "lost_rank", "doubled_rank", "sign", "lost_bucket"):
            for name, p in self.net.named_parameters():
                if o.tensor in name and p.requires_grad:
                    p.register_hook(hook)
