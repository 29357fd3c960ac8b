# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's engines. Its optimizers of ZeRO-1, 2, 3, bf16 and fp16 are no optimizers of torch: they hold flat partitions,
which an optimizer of torch inside them moves, group by group. All is read where it lies: no collective is called."""
import functools
import sys

import torch

from . import names, schedules
from .hooks import Restored
from .layouts import FlatLayout, Layout
from .part import Part, Unseen, of_axes
from .say import guarded, say
from .slices import Slice


def is_engine(x):
    return any(kind.__name__ == "DeepSpeedEngine" for kind in type(x).__mro__)


def part_of(p):
    """What this rank has of a parameter: AutoTP and AutoEP describe how they cut theirs."""
    shape = list(getattr(p, "ds_shape", p.shape))
    experts, cut = getattr(p, "ds_autoep_uc_meta", None), getattr(p, "ds_autotp_universal_checkpoint_meta", None)
    dim = cut["partition_dim"] if cut and not cut["replicated"] else None
    if not experts and dim is None:
        return Part(shape)
    if dim is not None:
        if cut["conversion"]["unsupported_reason"]:
            raise Unseen(cut["conversion"]["unsupported_reason"])
        shape[dim] = cut["original_shape"][dim]
    if experts:
        shape[0] = experts["logical_shape"][0]
    axes = [torch.arange(n) for n in shape]
    if experts:
        axes[0] = torch.tensor(experts["local_experts"])
    if dim is not None:
        size, at = _tensor_parallel()
        widths = cut["sub_param_shard_widths"] or (cut["partition_sizes"] and [cut["partition_sizes"]])
        blocks = axes[dim].split(list(cut["sub_param_sizes"] or [len(axes[dim])]))  # a fused matrix has several
        axes[dim] = torch.cat([(block.split(list(widths[i])) if widths else block.chunk(size))[at] for i, block in enumerate(blocks)])
    return of_axes(shape, axes)


def _tensor_parallel():
    """(ranks of AutoTP, this one's place)."""
    from deepspeed.utils import groups
    try:
        return groups.get_tensor_model_parallel_world_size(), groups.get_tensor_model_parallel_rank()
    except Exception:  # noqa: BLE001  a version without it
        return 1, 0


def _is(x, *kinds):
    return any(kind.__name__ in kinds for kind in type(x).__mro__)


class _Engine:
    """What an engine knows, whatever its optimizer."""

    _share = _moves = None
    scale = scale_after = None  # the loss scale before a step's update and after it

    def _know(self, engine):
        self.engine = engine
        import deepspeed
        self.framework = f"DeepSpeed {deepspeed.__version__}"
        self._known, self.ties = names.parameters(engine.module)
        for key, tie in (getattr(engine.module, "tied_comms", None) or {}).items():  # what it does not tie each stage has for itself
            tied, prefix = tie["weight_attr"], f"tied_modules.{key}."  # an attribute may be a property that gives a parameter of another name
            shared = {id(functools.reduce(getattr, name.split("."), tie["module"])) for name in ([tied] if isinstance(tied, str) else tied)}
            if engine.global_rank != min(tie["ranks"]):
                self._known = {at: f"{prefix}stage{engine.stage_id}.{n[len(prefix):]}" if n.startswith(prefix) and at not in shared else n
                               for at, n in self._known.items()}
        self._held = [(self._known[id(p)], p) for p in engine.module.parameters() if id(p) in self._known]
        self._parts = {id(p): part_of(p) for _, p in self._held}
        self.name = f"ZeRO-{engine.zero_optimization_stage()}" + (" pipeline" if _is(engine, "PipelineEngine") else "")

    def names(self):
        return self._known

    def counter(self):
        """Updates that were made: the engine counts those that it skipped, too."""
        return int(self.engine.global_steps) - int(self.engine.skipped_steps)

    def scalars(self):
        zero = self.engine.optimizer
        norm = getattr(zero, "_global_grad_norm", None)
        if norm is not None and self.scale and _is(zero, "FP16_UnfusedOptimizer"):  # which tells that of the scaled gradients
            norm = norm / self.scale
        found = {"norm": norm}
        if getattr(self.engine, "_is_gradient_accumulation_boundary", None) is None:  # else the training tells each step's last micro-batch
            found["accumulation"] = self.engine.gradient_accumulation_steps()
        bound = self.engine.gradient_clipping()
        if bound:
            found["clip"] = bound
        if self.scale is not None:
            found["loss_scale"] = self.scale
        if self.scale_after not in (None, self.scale):  # what the gradients are divided by, where it grows before
            found["loss_scale_after"] = self.scale_after
        return found

    def _schedule(self):
        return Layout.schedules(self) or schedules.of_engine(self.engine, self.optimizer)

    def schedules(self):
        return self._moves if self._moves is not None else self._schedule()

    def sequence(self):
        """(ranks that share a sequence, this one's place)."""
        group = getattr(self.engine, "seq_parallel_group", None)
        if group is None or getattr(self.engine, "sequence_parallel_size", 1) < 2:
            return 1, 0
        return torch.distributed.get_world_size(group=group), torch.distributed.get_rank(group=group)

    def axes(self):
        if not torch.distributed.is_initialized() or torch.distributed.get_world_size() == 1:
            return {}
        engine = self.engine
        found = {"data": [torch.distributed.get_world_size(group=engine.data_parallel_group), torch.distributed.get_rank(group=engine.data_parallel_group)]}
        if _is(engine, "PipelineEngine"):
            found["pipeline"] = [engine.grid.get_pipe_parallel_world_size(), engine.grid.get_stage_id()]
        for name, (size, at) in (("sequence", self.sequence()), ("tensor", _tensor_parallel())):
            if size > 1:
                found[name] = [size, at]
        for p in engine.module.parameters():
            if getattr(p, "group_name", None) is not None and not getattr(p, "allreduce", True):
                from deepspeed.utils import groups
                found["expert"] = [groups._get_expert_parallel_world_size(p.group_name), groups._get_expert_parallel_rank(p.group_name)]
        return found

    def by(self, p):
        try:
            if getattr(p, "group_name", None) is not None and not getattr(p, "allreduce", True):
                from deepspeed.utils import groups
                return groups._get_expert_data_parallel_rank(p.group_name)
            if _is(self.engine, "PipelineEngine"):
                grid = self.engine.grid
                shares = grid.get_data_parallel_world_size()  # a tied copy of another stage has a summand of its own
                return grid.get_data_parallel_rank() + (shares * grid.get_stage_id() if getattr(p, "ds_pipe_replicated", False) else 0)
            return self._place_of_data()
        except Exception:  # noqa: BLE001  a version without these
            return self._recorder.rank

    def _place_of_data(self):
        """Among the ranks with different data: those that share a sequence have different parts of it."""
        if self._share is None:
            at = torch.distributed.get_rank(group=self.engine.data_parallel_group)
            size, place = self.sequence()
            of = torch.distributed.get_world_size(group=self.engine.data_parallel_group)
            self._share = at * size + place if size * of == torch.distributed.get_world_size() else at
        return self._share

    def _hook_batches(self, recorder):
        if not _is(self.engine, "PipelineEngine") or self.engine.is_first_stage():  # other stages get activations
            Layout._hook_batches(self, recorder)

    def _hook_gradients(self, recorder, optimizers=None):
        for p in self.engine.module.parameters():
            name = self._known.get(id(p))
            if p.requires_grad and name:
                self._handles.append(p.register_hook(self._shaped_hook(recorder, name, p)))

    def _shaped_hook(self, recorder, name, p):
        part = self._parts[id(p)]
        by = functools.lru_cache(None)(lambda: self.by(p))

        def hook(gradient):
            if recorder.due():
                recorder.local(name, gradient, part, by())

        return hook


class Plain(_Engine, Layout):
    """ZeRO-0 in float32: the optimizer is the user's own, of named parameters."""

    def __init__(self, engine):
        Layout.__init__(self, [engine.module], engine.optimizer)
        self._know(engine)
        self.cut = {name: self._parts[id(p)] for name, p in self._held}

    def attach(self, recorder):
        Layout.attach(self, recorder)
        module = sys.modules.get("deepspeed.runtime.engine")
        made = getattr(module, "clip_grad_norm_", None)
        if made is None:
            return

        def clip_grad_norm_(*args, **kwargs):  # which the engine calls, and forgets the norm
            norm = made(*args, **kwargs)
            recorder.scalar("norm", norm)
            return norm

        module.clip_grad_norm_ = clip_grad_norm_
        self._handles.append(Restored(module, made, "clip_grad_norm_"))


class Zero(_Engine, FlatLayout):
    """All others."""

    def __init__(self, engine):
        FlatLayout.__init__(self, [engine.module], engine.optimizer.optimizer)
        self._know(engine)
        self._cut, self._stepped, self._shares = None, False, {}
        zero = engine.optimizer
        self.name += f" ({type(zero).__name__}{', round robin' if getattr(zero, 'round_robin_gradients', False) else ''})"
        if _is(zero, "ZenFlowZeroOptimizer", "SuperOffloadOptimizer_Stage3"):
            self.unseen.append(f"{type(zero).__name__} updates parameters in another thread: those updates are not recorded")
        if getattr(engine, "is_deepcompile_active", lambda: False)():
            self.unseen.append("DeepCompile reduces gradients itself: gradients of single micro-batches are not recorded")

    # ---- which parameters lie where in which flat tensor --------------------------------------------------------------
    def _fragments(self, groups, flats):
        for group, flat in zip(groups, flats):
            slices = []
            for p in group:
                mapping = getattr(p, "_hp_mapping", None)
                if mapping is None:
                    slices.append(Slice(self._known[id(p)], self._parts[id(p)].sliced(0, 0), 0))
                    continue
                low, high = mapping.lp_fragment_address, mapping.hp_fragment_address
                slices.append(Slice(self._known[id(p)], self._parts[id(p)].sliced(low.start, low.start + low.numel), high.start))
            yield flat, slices

    def _robin(self, zero):
        """Under round_robin_gradients: _hp_mapping follows the order of bit16_groups, the flat tensors that of the partitions. The parameters
        themselves lie in these."""
        for number, (group, low, flat) in enumerate(zip(zero.round_robin_bit16_groups, zero.bit16_groups_flat, zero.single_partition_of_fp32_groups)):
            size, slices = zero.partition_size[number], []
            first = torch.distributed.get_rank(group=zero.real_dp_process_group[number]) * size
            for p in group:
                at = p.data.storage_offset() - low.storage_offset() - first
                begin, end = max(0, -at), min(p.numel(), size - at)
                if end <= begin:
                    begin = end = at = 0
                slices.append(Slice(self._known[id(p)], self._parts[id(p)].sliced(begin, end), max(0, at)))
            yield flat, slices

    def _partitions(self, zero):
        for group, flat in zip(zero.fp16_groups, zero.fp32_partitioned_groups_flat):
            slices = []
            for p in group:
                at = zero.grad_position[zero.get_param_id(p)][1]
                size, rank = p.ds_tensor.ds_numel, torch.distributed.get_rank(group=p.ds_process_group)
                begin = min(rank * size, p.ds_numel)
                slices.append(Slice(self._known[id(p)], Part(p.ds_shape, begin, min(size, p.ds_numel - begin)), at))
            yield flat, slices

    def _whole(self, zero):
        if _is(zero, "FP16_UnfusedOptimizer"):
            for low, high in zip(zero.fp16_groups, zero.fp32_groups):
                for p, master in zip(low, high):
                    yield master, [Slice(self._known[id(p)], self._parts[id(p)], 0)]
            return
        for group, flat in zip(zero.fp16_groups, zero.fp32_groups_flat):
            slices, at = [], 0
            for p in group:
                slices.append(Slice(self._known[id(p)], self._parts[id(p)], at))
                at += p.numel()
            yield flat, slices

    def _found(self):
        zero = self.engine.optimizer
        if _is(zero, "BF16_Optimizer"):
            return self._fragments(zero.bf16_groups, zero.fp32_groups_flat_partition)
        if _is(zero, "DeepSpeedZeroOptimizer_Stage3"):
            return self._partitions(zero)
        if _is(zero, "DeepSpeedZeroOptimizer") and getattr(zero, "round_robin_gradients", False):
            return self._robin(zero)
        if _is(zero, "DeepSpeedZeroOptimizer"):
            return self._fragments(zero.bit16_groups, zero.single_partition_of_fp32_groups)
        if _is(zero, "FP16_UnfusedOptimizer", "FP16_Optimizer"):
            return self._whole(zero)
        raise TypeError(f"DeepSpeed's {type(zero).__name__} is not supported by zs_probe")

    def slices(self):
        if self._cut is None or any(id(flat) != key for flat, key in zip(self._flats, self._cut)):
            found = list(self._found())
            self._flats = [flat for flat, _ in found]
            self._cut = {id(flat): slices for flat, slices in found}
        return self._cut

    def flats(self):
        self.slices()
        return self._flats

    def parameters(self):
        yield from FlatLayout.parameters(self)
        masters = {_place(flat) for flat in self._flats}
        for name, p in self._held:  # what forward computes with, where it is another copy
            if not p.requires_grad:
                continue
            if not hasattr(p, "ds_tensor"):
                if _place(p) not in masters:
                    yield self.label("model", name), p, self._parts[id(p)]
                continue
            if getattr(p, "ds_persist", False) and p.numel() == p.ds_numel:  # small ones stay whole on every rank
                yield self.label("model", name), p, self._model_part(p, None, None)
                continue
            held, group = getattr(p, "ds_secondary_tensor", None), getattr(p, "ds_zero_param_process_group", None)  # hpZ gathers from the former
            if held is None or hasattr(held, "ds_quant_scale"):
                held, group = p.ds_tensor, p.ds_process_group
            if _place(held) in masters or getattr(getattr(held, "status", None), "name", "") == "NOT_AVAILABLE":
                continue
            part, flat = self._model_part(p, held, group), held.detach() if held.dim() == 1 else held.detach().reshape(-1)
            yield self.label("model", name), flat if flat.numel() == part.count else flat[:part.count], part

    def _model_part(self, p, held, group):
        """What the ranks of a group hold each of a parameter: of this one; without a group all of it."""
        key = (id(p), id(group), held is not None and held.ds_numel)
        known = self._shares.get(key)
        if known is None:
            begin = 0 if held is None else min(torch.distributed.get_rank(group=group) * held.ds_numel, p.ds_numel)
            size = p.ds_numel if held is None else min(held.ds_numel, p.ds_numel - begin)
            known = self._shares[key] = (Part(p.ds_shape, begin, size), group)  # which keeps its id
        return known[0]

    def states(self):
        zero, muon = self.engine.optimizer, any(self.place(group) == "direction" for group in self.optimizer.param_groups)
        for place, *row in FlatLayout.states(self):
            if self._stepped or not (muon and place.startswith("state.momentum_buffer/")):  # which has the gradient before the optimizer's step
                yield place, *row
        if not self._stepped:
            return
        for group, flat in zip(getattr(zero, "params_in_partition", ()), self.flats()):
            momentum, at = (self.optimizer.state.get(flat) or {}).get("momentum_buffer"), 0
            if momentum is None or momentum.numel() == flat.numel() or momentum.numel() != sum(p.numel() for p in group):
                continue
            for p in group:  # Muon keeps those of whole parameters, one after another
                yield f"state.momentum_buffer/{self._known[id(p)]}", momentum[at:at + p.numel()], self._parts[id(p)]
                at += p.numel()

    def options(self, optimizer):
        return Layout.options(self, optimizer)

    def place(self, group):
        """At ZeRO-0 Muon orthogonalises by itself: it gets gradients."""
        return FlatLayout.place(self, group) if self.engine.zero_optimization_stage() > 0 else "grad"

    # ---- hooks -------------------------------------------------------------------------------------------------------
    def attach(self, recorder):
        self._recorder = recorder
        self._hook_step(self.optimizer, recorder, ends=False)
        self._hook_gradients(recorder)
        self._hook_batches(recorder)
        zero, engine, given = self.engine.optimizer, self.engine, []
        made, backward = zero.step, engine.backward

        def watched(loss, *args, **kwargs):  # what the training gives it; what backward then begins with the recorder has
            given[:] = [loss.detach()] if recorder.due() and torch.is_tensor(loss) else []
            return backward(loss, *args, **kwargs)

        engine.backward = watched
        self._handles.append(Restored(engine, backward, "backward"))

        def step(*args, **kwargs):
            self.scale = _scale(zero)  # the update changes it
            self._unscaled(given, recorder.begun)
            self._moves = guarded(self._schedule)()  # it takes one group after another
            with _Gathers(self.devices()):
                result = made(*args, **kwargs)
            self.scale_after = self.scale and _scale(zero)
            self._stepped = True
            recorder.after()
            return result

        zero.step = step
        self._handles.append(Restored(zero, made))

    @guarded
    def _unscaled(self, given, begun):
        """Forgets the scale where no loss was multiplied by it: in bfloat16 some releases divide all gradients nevertheless."""
        if given and begun is not None and (self.scale or 1) > 1:
            times = float(begun) / (float(given[0]) or 1) * self.engine.gradient_accumulation_steps()
            self.scale = self.scale if abs(times) > self.scale ** 0.5 else None

    def devices(self):
        return {p.device for p in self.engine.module.parameters() if p.device.type != "meta"}


class _Gathers:
    """On processors the gathers of a step: DeepSpeed waits for the last of those it begins, and gloo ends them in any order, so
    that what they gather may not be there yet when the step is over. At the end of the context it is."""

    def __init__(self, devices):
        self._on, self._begun, self._made = all(device.type == "cpu" for device in devices), [], []

    @guarded
    def __enter__(self):
        import deepspeed.comm.comm
        backend = getattr(deepspeed.comm.comm, "cdb", None) if self._on else None
        for name in ("all_gather", "all_gather_into_tensor"):
            if callable(getattr(backend, name, None)):
                self._made.append((backend, name))
                setattr(backend, name, self._kept(getattr(backend, name)))

    def _kept(self, gather):
        def run(*args, **kwargs):
            handle = gather(*args, **kwargs)
            if hasattr(handle, "wait"):
                self._begun.append(handle)
            return handle
        return run

    @guarded
    def __exit__(self, *_):
        for backend, name in self._made:
            delattr(backend, name)  # which shows its class's own again
        for handle in self._begun:
            handle.wait()


def _place(tensor):
    """Where its storage lies."""
    return (tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()).data_ptr()


def _scale(zero):
    """The loss scale of this step."""
    for holder, key in ((zero, "loss_scale"), (getattr(zero, "loss_scale_config", None), "cur_scale"), (zero, "cur_scale")):
        value = getattr(holder, key, None)
        if isinstance(value, (int, float)):
            return float(value)
    return None


def layout(engine):
    """The layout of an engine; None where it has no optimizer, which is said."""
    zero = engine.optimizer
    if zero is None or _is(zero, "DeepSpeedZeRoOffload", "DummyOptim"):
        say("this DeepSpeed engine has no optimizer: nothing is recorded")
        return None
    if isinstance(zero, torch.optim.Optimizer):
        return Plain(engine)
    if not hasattr(zero, "optimizer"):
        say(f"nothing is recorded: DeepSpeed's {type(zero).__name__} holds no torch optimizer")
        return None
    return Zero(engine)
