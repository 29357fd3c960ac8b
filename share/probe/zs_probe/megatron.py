# SPDX-License-Identifier: Apache-2.0
"""Megatron-core's distributed optimizer: an optimizer of torch (or of Transformer Engine) inside it moves this rank's slice of
each parameter, which may be a part by tensor parallelism. All is read where it lies: no collective is called."""
import torch

from . import names
from .layouts import FlatLayout, Restored, Slice
from .part import Part, of_axes
from .say import guarded, say


def is_distributed(x):
    return any(kind.__name__ == "DistributedOptimizer" and kind.__module__.startswith("megatron.") for kind in type(x).__mro__)


def inner(x):
    """The distributed optimizers in what get_megatron_optimizer() gives."""
    return [one for one in getattr(x, "chained_optimizers", [x]) if is_distributed(one)]


def _state():
    from megatron.core import parallel_state
    return parallel_state


class Megatron(FlatLayout):
    """One distributed optimizer and its model."""

    tensor_parallel = False  # parameters are no DTensors

    def __init__(self, distributed):
        FlatLayout.__init__(self, distributed.model_chunks, distributed.optimizer)
        import megatron.core
        state = _state()
        self.distributed, self.framework = distributed, f"Megatron-core {megatron.core.__version__}"
        self.name = f"distributed optimizer, tensor parallel {state.get_tensor_model_parallel_world_size()}"
        self._model, self._cut = {}, None
        for chunk in distributed.model_chunks:
            known, ties = names.parameters(chunk)
            self._model.update(known)
            self.ties.update(ties)

    def names(self):
        return self._model

    # ---- which parameters lie where ----------------------------------------------------------------------------------
    @staticmethod
    def _part(p):
        """What this rank has of a parameter."""
        shape, dim = list(p.shape), p.partition_dim if getattr(p, "tensor_model_parallel", False) else -1
        size, rank = _state().get_tensor_model_parallel_world_size(), _state().get_tensor_model_parallel_rank()
        if dim < 0 or size == 1:
            return Part(shape)
        shape[dim] *= size
        axes = [torch.arange(n) for n in shape]
        axes[dim] = torch.cat([block.chunk(size)[rank] for block in axes[dim].chunk(getattr(p, "partition_stride", 1))])  # interleaved so often
        return of_axes(shape, axes)

    def _shards(self):
        """(the model's parameter, the flat slice that is moved)."""
        d = self.distributed
        for model, shards in ((d.model_fp32_groups, d.shard_fp32_groups), (d.model_float16_groups, d.shard_fp32_from_float16_groups)):
            for group, flats in zip(model, shards):
                yield from zip(group, flats)

    def slices(self):
        if self._cut is None:
            self._cut = {}
            for p, flat in self._shards():
                held = self.distributed._get_model_param_range_map(p)["param"]
                self._cut[id(flat)] = [Slice(self._model[id(p)], self._part(p).sliced(held.start, held.end), 0)]
        return self._cut

    def parameters(self):
        yield from FlatLayout.parameters(self)
        for chunk in self.roots:  # what forward computes with, where it is another copy, or gathered from the ranks
            for p in chunk.parameters():
                if p.requires_grad:
                    yield f"model/{self._model[id(p)]}", p.detach().reshape(-1), self._part(p)

    # ---- what a step shows -------------------------------------------------------------------------------------------
    def devices(self):
        return {p.device for chunk in self.roots for p in chunk.parameters()}

    def scalars(self):
        found, bound = {}, self.distributed.config.clip_grad
        if bound:
            found["clip"] = bound
        scaler = self.distributed.grad_scaler
        if scaler is not None:
            found["loss_scale"] = scaler.scale.detach()
        return found

    def by(self, p):
        return _state().get_data_parallel_rank()

    # ---- hooks -------------------------------------------------------------------------------------------------------
    def attach(self, recorder):
        self._recorder = recorder
        self._hook_step(self.optimizer, recorder, ends=False)
        self._hook_gradients(recorder)
        self._hook_batches(recorder)
        distributed, made = self.distributed, self.distributed.step_with_ready_grads

        def step(*args, **kwargs):
            result = made(*args, **kwargs)
            recorder.after()
            return result

        distributed.step_with_ready_grads = step
        self._handles.append(Restored(distributed, made, "step_with_ready_grads"))

    def _hook_gradients(self, recorder, optimizers=None):
        for chunk in self.roots:
            for p in chunk.parameters():
                if p.requires_grad:
                    self._handles.append(p.register_hook(self._shaped_hook(recorder, self._model.get(id(p)), p)))

    def _shaped_hook(self, recorder, name, p):
        part = self._part(p)

        @guarded
        def hook(gradient):
            if recorder.due() and name:
                recorder.local(name, gradient.detach().reshape(-1), part, self.by(p))

        return hook


def layout(distributed):
    """The layout of a distributed optimizer; None where it cannot be told which parameter is which, which is said."""
    state = _state()
    if getattr(distributed, "is_stub_optimizer", False):
        return None
    for what, size in (("pipeline", state.get_pipeline_model_parallel_world_size()), ("expert", state.get_expert_model_parallel_world_size())):
        if size > 1:
            say(f"nothing is recorded: Megatron-core with {what} parallelism of {size} ranks, in which different parameters have the same name")
            return None
    if any(shard is None for _, shard in Megatron(distributed)._shards()):
        say("nothing is recorded: Megatron-core's precision-aware optimizer holds its masters itself")
        return None
    return Megatron(distributed)
