# SPDX-License-Identifier: Apache-2.0
"""Megatron-core's models, whose layers and experts count from 0 on each rank, and its optimizers: those of torch, which move parameters,
and the distributed one, in which an optimizer moves this rank's slice of each. All is read where it lies: no collective is called."""
import re

import torch

from . import names
from .hooks import Restored
from .layouts import FlatLayout, Layout
from .part import Part, of_axes
from .say import guarded, say
from .slices import Slice


def is_distributed(x):
    return any(kind.__name__ == "DistributedOptimizer" and kind.__module__.startswith("megatron.") for kind in type(x).__mro__)


def inner(x):
    """The distributed optimizers in what get_megatron_optimizer() gives."""
    return [one for one in getattr(x, "chained_optimizers", [x]) if is_distributed(one)]


def _state():
    from megatron.core import parallel_state
    return parallel_state


def _sizes(axis):
    """(ranks of an axis, this one's place); 1 where this release has no such axis."""
    try:
        return getattr(_state(), f"get_{axis}_world_size")(), getattr(_state(), f"get_{axis}_rank")()
    except (AttributeError, AssertionError):
        return 1, 0


AXES = {"data": "data_parallel", "context": "context_parallel", "tensor": "tensor_model_parallel", "pipeline": "pipeline_model_parallel",
        "expert": "expert_model_parallel", "expert tensor": "expert_tensor_parallel"}


def is_model(root):
    """Whether a module is Megatron-core's, on ranks that share a model."""
    if not any(type(m).__module__.startswith("megatron.core.") for _, m in names.modules(root)):
        return False
    return _state().model_parallel_is_initialized()


def renamer(root):
    """A function from names in a chunk to names in the whole model: by each layer's own number, each expert's over the ranks."""
    layers, experts = [], 0
    for path, module in names.modules(root):
        parent, _, last = path.rpartition(".")
        number = getattr(module, "layer_number", None)
        if last.isdigit() and parent.endswith("layers") and "mtp" not in parent and isinstance(number, int):
            layers.append((path + ".", f"{parent}.{number - 1}."))
        if parent.endswith("local_experts"):
            experts = max(experts, int(last) + 1)
        experts = max(experts, getattr(module, "num_gemms", 0))
    first = experts * _sizes("expert_model_parallel")[1]
    chunk = names.inner(root)
    shared = getattr(chunk, "share_embeddings_and_output_weights", False) and not getattr(chunk, "pre_process", True)

    def rename(name):
        for here, everywhere in layers:
            if name.startswith(here):
                name = everywhere + name[len(here):]
                break
        name = re.sub(r"(local_experts\.|experts\.linear_fc\d\.(?:weight|bias))(\d+)", lambda found: found[1] + str(int(found[2]) + first), name)
        return "embedding.word_embeddings.weight" if shared and name == "output_layer.weight" else name

    return rename


_parts = {}


def part_of(p):
    """What this rank has of a parameter: an expert's is cut over other ranks than the rest."""
    shape, dim = list(p.shape), p.partition_dim if getattr(p, "tensor_model_parallel", False) else -1
    size, rank = _sizes("tensor_model_parallel" if getattr(p, "allreduce", True) else "expert_tensor_parallel")
    blocks = getattr(p, "partition_stride", 1)  # interleaved so often
    key = (tuple(shape), dim, size, rank, blocks)
    if key not in _parts:
        if dim < 0 or size == 1:
            _parts[key] = Part(shape)
        else:
            shape[dim] *= size
            axes = [torch.arange(n) for n in shape]
            axes[dim] = torch.cat([block.chunk(size)[rank] for block in axes[dim].chunk(blocks)])
            _parts[key] = of_axes(shape, axes)
    return _parts[key]


class Places:
    """Names, parts and groups of ranks of a model whose parameters lie on many ranks."""

    tensor_parallel = False  # parameters are no DTensors

    def of_root(self, root):
        known, ties = names.parameters(root)
        rename = renamer(root)
        self.cut.update((rename(known[id(p)]), part_of(p)) for p in root.parameters() if id(p) in known)
        return {key: rename(name) for key, name in known.items()}, {rename(name): [rename(o) for o in others] for name, others in ties.items()}

    def axes(self):
        found = {name: list(_sizes(axis)) for name, axis in AXES.items()}
        return {name: place for name, place in found.items() if place[0] > 1 or name == "data"}

    def by(self, p):
        """Of the summands of a gradient this rank's: ranks of tensor parallelism have one each of what they hold whole under sequence
        parallelism, and so have the first and the last stage of what they share."""
        state = _state()
        if not getattr(p, "allreduce", True):
            return state.get_expert_data_parallel_rank()
        shares, at = state.get_data_parallel_world_size(with_context_parallel=True), state.get_data_parallel_rank(with_context_parallel=True)
        size, place = _sizes("tensor_model_parallel")
        if getattr(p, "sequence_parallel", False) and size > 1:
            return at + shares * place
        stages, stage = _sizes("pipeline_model_parallel")
        return at + shares * (stage if stages > 1 and (getattr(p, "shared", False) or getattr(p, "shared_embedding", False)) else 0)

    def begin(self):
        pass

    def _hook_batches(self, recorder):
        roots = self.roots
        self.roots = [root for root in roots if getattr(names.inner(root), "pre_process", True)]  # other stages get activations
        Layout._hook_batches(self, recorder)
        self.roots = roots


class Chunks(Places, Layout):
    """An optimizer of torch moves the parameters themselves."""

    def __init__(self, roots, optimizer):
        Layout.__init__(self, roots, optimizer)
        import megatron.core
        self.framework = f"Megatron-core {megatron.core.__version__}"

    def kind(self):
        self.name = f"optimizers of torch, tensor parallel {_sizes('tensor_model_parallel')[0]}"


class Megatron(Places, FlatLayout):
    """Distributed optimizers and their model."""

    def __init__(self, distributed):
        FlatLayout.__init__(self, distributed.model_chunks, distributed.optimizer)
        import megatron.core
        self.distributed, self.framework = [distributed], f"Megatron-core {megatron.core.__version__}"
        aware = "precision-aware " if getattr(distributed.config, "use_precision_aware_optimizer", False) else ""
        self.name = f"{aware}distributed optimizer, tensor parallel {_sizes('tensor_model_parallel')[0]}"
        self._model, self._cut = {}, None
        for chunk in self.roots:
            known, ties = self.of_root(chunk)
            self._model.update(known)
            self.ties.update(ties)

    def names(self):
        return self._model

    def add(self, optimizer):
        """One of torch that a distributed optimizer takes: it joins with that."""

    def join(self, distributed):
        """That of the experts, beside that of all others."""
        self.distributed.append(distributed)
        self._cut = None
        self.optimizers.append(distributed.optimizer)
        self._hook(distributed)

    def shards(self):
        """(the optimizer, the model's parameter, the flat slice that is moved)."""
        for d in self.distributed:
            low = [[own if own is not None else of_model for own, of_model in zip(*pair)]  # a precision-aware one moves slices of the model
                   for pair in zip(d.shard_fp32_from_float16_groups, d.shard_float16_groups)]
            for model, shards in ((d.model_fp32_groups, d.shard_fp32_groups), (d.model_float16_groups, low)):
                for group, flats in zip(model, shards):
                    yield from ((d, p, flat) for p, flat in zip(group, flats))

    def slices(self):
        if self._cut is None:
            self._cut = {}
            for d, p, flat in self.shards():
                held = d._get_model_param_range_map(p)["param"]
                self._cut[id(flat)] = [Slice(self._model[id(p)], part_of(p).sliced(held.start, held.end), 0)]
        return self._cut

    def parameters(self):
        yield from FlatLayout.parameters(self)
        for chunk in self.roots:  # what forward computes with, where it is another copy, or gathered from the ranks
            for p in chunk.parameters():
                if p.requires_grad:
                    yield f"model/{self._model[id(p)]}", p.detach().reshape(-1), part_of(p)

    # ---- what a step shows -------------------------------------------------------------------------------------------
    def devices(self):
        return {p.device for chunk in self.roots for p in chunk.parameters()}

    def scalars(self):
        found, d = {}, self.distributed[0]
        if d.config.clip_grad:
            found["clip"] = d.config.clip_grad
        if d.grad_scaler is not None:
            found["loss_scale"] = d.grad_scaler.scale.detach()
        return found

    # ---- hooks -------------------------------------------------------------------------------------------------------
    def attach(self, recorder):
        self._recorder = recorder
        self._hook_gradients(recorder)
        self._hook_batches(recorder)
        for distributed in self.distributed:
            self._hook(distributed)

    def _hook(self, distributed):
        self._hook_step(distributed.optimizer, self._recorder, ends=False)
        made = distributed.step_with_ready_grads

        def step(*args, **kwargs):
            result = made(*args, **kwargs)
            self._recorder.after(distributed.optimizer)
            return result

        distributed.step_with_ready_grads = step
        self._handles.append(Restored(distributed, made, "step_with_ready_grads"))

    def _hook_gradients(self, recorder, optimizers=None):
        for root, chunk in enumerate(self.roots):
            for p in chunk.parameters():
                if p.requires_grad:
                    self._handles.append(p.register_hook(self._shaped_hook(recorder, self._model.get(id(p)), p, root)))

    def _shaped_hook(self, recorder, name, p, root):
        part = part_of(p)

        @guarded
        def hook(gradient):
            if recorder.due() and name:
                recorder.local(name, gradient.detach().reshape(-1), part, self.by(p), root)

        return hook


def layout(distributed):
    """The layout of a distributed optimizer; None where it cannot be told which parameter is which, which is said."""
    if getattr(distributed, "is_stub_optimizer", False):
        return None
    made = Megatron(distributed)
    if any(shard is None for _, _, shard in made.shards()):
        say("nothing is recorded: Megatron-core's distributed optimizer moves parameters of few bits that have no slices")
        return None
    return made
