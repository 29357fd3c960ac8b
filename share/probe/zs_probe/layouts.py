# SPDX-License-Identifier: Apache-2.0
"""What an optimizer of torch holds: parameters of modules, whole or as DTensors, or flat ones that another part of the
framework cuts (Slices). A layout shows tensors as (PLACE/NAME, flat values, Part)."""
import fnmatch
import functools
import gc
import os
import types

import torch

from . import names, pipelining, schedules
from .part import Part, Unseen, held
from .say import guarded, unseen
from .writer import type_name

_SMALL = 1 << 16  # elements of a buffer
_IGNORED = -100  # what PyTorch's cross-entropy leaves out where it is not told otherwise


class Slice:
    """A part of a parameter within a flat tensor."""

    def __init__(self, name, part, at):
        self.name, self.part, self.at = name, part, at

    def of(self, flat):
        return (flat if flat.dim() == 1 else flat.reshape(-1)).narrow(0, self.at, self.part.count)


class Restored:
    """Gives an object its own method back."""

    def __init__(self, of, method, name="step"):
        self.of, self.method, self.name = of, method, name

    def remove(self):
        setattr(self.of, self.name, self.method)


class Called:
    """Hooks around a method of a module: the call of one that is compiled in place, with its own hooks, or Lightning's step."""

    def __init__(self, module, name, before, after):
        call = getattr(module, name)

        @functools.wraps(call)  # Lightning looks at the arguments that it takes
        def around(*args, **kwargs):
            before(module, args, kwargs)
            made = call(*args, **kwargs)
            if after is not None:
                after(module, args, made)
            return made

        around.zs_probe = (*getattr(call, "zs_probe", ()), (before, after))
        self.module, self.name, self.around = module, name, around
        self.call = vars(module).get(name)
        setattr(module, name, around)

    def remove(self):
        if vars(self.module).get(self.name) is not self.around:
            return
        if self.call is None:
            delattr(self.module, self.name)
        else:
            setattr(self.module, self.name, self.call)


class Layout:
    """Parameters of `roots` that its optimizers move: several where a model has several."""

    name, framework = "plain", ""
    tensor_parallel = True  # where parameters are DTensors, it is by tensor parallelism
    sees_forward = False  # whether a module's forward tells of batches
    calls_past_hooks = False  # whether a wrapper calls forward() of what it wraps

    def __init__(self, roots, optimizer):
        self._mesh, self._ranks, self._ordered = None, {}, (None, None, None)
        self.optimizers, self.roots, self.unseen, self._named, self.ties = [optimizer], roots, [], None, {}
        self.frozen, self._handles, self._recorder, self._watched = [], [], None, []
        self._buffers, self._changed = None, set()
        self.cut = {}  # by name the Part of a parameter that is no DTensor and that this rank has in part

    @property
    def optimizer(self):
        return self.optimizers[0]

    def add(self, optimizer):
        """Another optimizer of the same model."""
        self.optimizers.append(optimizer)
        self._named, self._mesh, self._ordered = None, None, (None, None, None)
        if self._recorder is not None:
            self._hook_step(optimizer, self._recorder)
            self._hook_gradients(self._recorder, [optimizer])

    def groups(self):
        """Of all optimizers."""
        return [group for optimizer in self.optimizers for group in optimizer.param_groups]

    def moved(self):
        """The tensors that the optimizers move."""
        return [p for group in self.groups() for p in group["params"]]

    # ---- names -------------------------------------------------------------------------------------------------------
    def names(self):
        """{id(parameter): name}. Looked up where an optimizer has other parameters than before: wrappers replace them."""
        held_now = tuple(id(p) for p in self.moved())
        if self._named is None or self._named[0] != held_now:
            found = {}
            for root in self.roots:
                if hasattr(root, "_modules"):
                    self.cut.update(names.experts(root))
                    of_root, ties = self.of_root(root)
                    self.ties.update(ties)
                else:
                    of_root = {id(p): n for n, p in root.named_parameters()}
                for key, name in of_root.items():
                    found.setdefault(key, name)
            self._named = (held_now, found)
            self.kind()
        return self._named[1]

    def of_root(self, root):
        """{id(parameter): name}, {name: [other names]} of a module's."""
        return names.parameters(root)

    def part(self, name, tensor):
        """(values, Part) of what this rank holds of a tensor that belongs to a parameter. Raises Unseen."""
        known = self.cut.get(name)
        return held(tensor) if known is None or known.count != tensor.numel() else (tensor, known)

    def kind(self):
        wraps = {kind.__name__ for root in self.roots if hasattr(root, "modules") for m in root.modules() for kind in type(m).__mro__}
        meshes = {tuple(p.device_mesh.mesh_dim_names or ()) for p in self.moved() if hasattr(p, "device_mesh")}
        if meshes:
            self.name = "FSDP2" if "FSDPModule" in wraps else "DTensor"
            if any(len(m) > 1 for m in meshes):
                self.name += " over a mesh of " + " x ".join(str(x) for x in max(meshes, key=len))
        elif "DistributedDataParallel" in wraps:
            self.name = "DDP"

    def begin(self):
        """At the first step: DDP may have wrapped the modules since, as Accelerate's does."""
        ids = {id(root) for root in self.roots}
        if self.name == "plain" and any(type(m).__name__ == "DistributedDataParallel" and id(m.__dict__.get("_modules", {}).get("module")) in ids
                                        for m in gc.get_objects()):
            self.name = "DDP"

    def loose(self):
        """Names of trained parameters that no optimizer moves; of flat ones nothing is known."""
        known, held_now = self.names(), {id(p) for p in self.moved()}
        return sorted(known[id(p)] for root in self.roots if hasattr(root, "parameters") for p in root.parameters()
                      if p.requires_grad and id(p) in known and id(p) not in held_now)

    def axes(self):
        """{axis of parallelism: [ranks, this rank's place]}."""
        found = {}
        for p in self.moved():
            mesh = getattr(p, "device_mesh", None)
            for name, size, at in zip(mesh.mesh_dim_names or (), mesh.mesh.shape, mesh.get_coordinate() or ()) if mesh is not None else ():
                found[str(name)] = [int(size), int(at)]
        for root in self.roots:
            found.update(pipelining.axis(root))
        if not found and self._recorder.world_size > 1:
            found["data"] = [self._recorder.world_size, self._recorder.rank]
        return found

    def ordered(self, parameters):
        """(name, parameter), in the order of the modules."""
        known, key = self.names(), tuple([id(p) for p in parameters])
        if self._ordered[:2] != (known, key):
            order = {key: i for i, key in enumerate(known)}
            pairs = [(known.get(id(p), f"unnamed.{i}"), p) for i, p in enumerate(parameters)]
            self._ordered = (known, key, sorted(pairs, key=lambda pair: order.get(id(pair[1]), len(order))))
        return self._ordered[2]

    # ---- what a step shows -------------------------------------------------------------------------------------------
    def devices(self):
        return {p.device for p in self.moved() if p.device.type != "meta"}

    def steps_before(self):
        """Steps that the optimizers made before: of a training that resumed. None: they do not count them."""
        for optimizer in self.optimizers:
            for state in optimizer.state.values():
                step = state.get("step") if isinstance(state, dict) else None
                if step is not None:
                    return int(step.item() if torch.is_tensor(step) else step)
        return None

    def called(self, p):
        """The names of the parameters that lie in a tensor which an optimizer moves."""
        return [(self._named or (0, self.names()))[1].get(id(p), "unnamed")]

    def counters(self):
        """(names, what the optimizer's state has as its number of steps)."""
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    state = optimizer.state.get(p) if p in optimizer.state else None
                    step = state.get("step") if isinstance(state, dict) else None
                    if isinstance(step, (int, float)) or (torch.is_tensor(step) and step.numel() == 1):
                        yield self.called(p), step

    def buffers(self, whole=False):
        """The modules' buffers: all, or those that may have changed since the first call: a large one, a mask for example, is
        read where it was written, and small ones always, since batch norm writes its own without a trace."""
        if self._buffers is None:
            self._buffers, seen = [], set()
            for root in self.roots:
                for path, module in names.modules(root) if hasattr(root, "_modules") else ():
                    for key, tensor in getattr(module, "_buffers", {}).items():
                        if torch.is_tensor(tensor) and id(tensor) not in seen:
                            seen.add(id(tensor))
                            self._buffers.append((f"{path}.{key}" if path else key, module, key, _version(tensor)))
        for name, module, key, version in self._buffers:
            tensor = module._buffers.get(key)
            if not torch.is_tensor(tensor) or tensor.device.type == "meta" or tensor.layout != torch.strided:
                continue
            if name not in self._changed and (tensor.numel() <= _SMALL or _version(tensor) != version):
                self._changed.add(name)
            if whole or name in self._changed:
                yield from self._seen("buffer", name, tensor.detach())

    def counter(self):
        """The framework's own count of steps made; None: it has none."""
        return None

    def scalars(self):
        return {}

    def schedules(self):
        return schedules.told(self.groups())

    def options(self, optimizer):
        """Of each group the options, whatever they are, and the names of its parameters."""
        return [{**{key: _plain(value) for key, value in group.items() if key != "params"}, "optimizer": type(optimizer).__name__,
                 "params": [name for p in group["params"] for name in self.called(p)]}
                for group in optimizer.param_groups if group["params"]]

    def _seen(self, place, name, tensor):
        try:
            flat, part = self.part(name, tensor)
            if part.summand is not None and place != "grad":
                raise Unseen("its values are summands of several ranks (Partial)")
        except Unseen as error:
            unseen(f"{place} of {name} is not recorded: {error}")
            return
        yield f"{place}/{name}", flat, part

    def gradients(self, optimizer):
        scale = getattr(optimizer, "grad_scale", None)  # of GradScaler, for optimizers that unscale by themselves
        for name, p in self.ordered([p for g in optimizer.param_groups for p in g["params"]]):
            if p.grad is not None:
                gradient = p.grad if scale is None else p.grad / scale
                yield from self._seen("grad", name, gradient)

    def states(self):
        state_of = {id(p): optimizer.state[p] for optimizer in self.optimizers for group in optimizer.param_groups
                    for p in group["params"] if p in optimizer.state}
        for name, p in self.ordered(self.moved()):
            for key, value in (state_of.get(id(p)) or {}).items():
                if torch.is_tensor(value) and value.shape == p.shape and value.dim() > 0:
                    yield from self._seen(f"state.{key}", name, value)

    def parameters(self):
        for name, p in self.ordered(self.moved()):
            yield from self._seen("param", name, p)

    # ---- hooks -------------------------------------------------------------------------------------------------------
    def attach(self, recorder):
        """Hooks of the optimizer's step, and of each micro-batch's gradients."""
        self._recorder = recorder
        for optimizer in self.optimizers:
            self._hook_step(optimizer, recorder)
        self._hook_gradients(recorder)
        self._hook_batches(recorder)

    def detach(self):
        for handle in reversed(self._handles):
            handle.remove()
        self._handles, self._watched = [], []

    def _hook_step(self, optimizer, recorder, ends=True):
        depth = [0]

        def before():
            depth[0] += 1
            if depth[0] == 1:
                recorder.before(optimizer)

        def after():
            depth[0] = max(0, depth[0] - 1)
            if depth[0] == 0 and ends:
                recorder.after(optimizer)

        def with_closure(args, kwargs):
            """A closure computes the gradients: they are there after it."""
            closure = kwargs.get("closure") or next((a for a in args[1:] if callable(a)), None)
            if closure is None:
                return None

            def run():
                value = closure()
                guarded(before)()
                depth[0] = 1
                return value

            return (tuple(run if a is closure else a for a in args), {k: run if v is closure else v for k, v in kwargs.items()})

        @guarded
        def pre(opt, args, kwargs):
            changed = with_closure(args, kwargs)
            if changed is None:
                before()
            return changed

        if hasattr(optimizer, "register_step_pre_hook"):
            # A compiled step breaks its graph at them: without this, torch.compile compiles the recorder.
            eager = getattr(getattr(torch, "compiler", None), "disable", lambda hook: hook)
            self._handles.append(optimizer.register_step_pre_hook(eager(pre)))
            self._handles.append(optimizer.register_step_post_hook(eager(guarded(lambda *_: after()))))
            return
        plain = optimizer.step  # torch 1.13, whose schedules take the method of an object

        @functools.wraps(plain)
        def step(self, *args, **kwargs):
            changed = pre(self, (self, *args), kwargs)
            result = plain(*changed[0][1:], **changed[1]) if changed else plain(*args, **kwargs)
            guarded(after)()
            return result

        optimizer.step = types.MethodType(step, optimizer)
        self._handles.append(Restored(optimizer, plain))

    def _hook_gradients(self, recorder, optimizers=None):
        known = self.names()
        for p in [p for optimizer in optimizers or self.optimizers for group in optimizer.param_groups for p in group["params"]]:
            if p.requires_grad and p.is_leaf:
                self._handles.append(p.register_hook(self._local_hook(recorder, known.get(id(p)), p)))

    def _local_hook(self, recorder, name, p):
        root = next((i for i, one in enumerate(self.roots) if len(self.roots) > 1 and hasattr(one, "parameters") and any(p is q for q in one.parameters())), 0)

        @guarded
        def local(gradient):
            called = name or self.names().get(id(p))
            if called is None:
                return
            try:
                flat, part = self.part(called, gradient)
            except Unseen as error:
                unseen(f"gradients of single micro-batches are not recorded of {called}: {error}")
                return
            summands = 0 if part.summand is None else self._recorder.world_size * part.summand  # each counts for itself
            recorder.local(called, flat, part, self.by(p) + summands, root)

        def hook(gradient):
            if recorder.due() and not is_compiling():
                local(gradient)

        return hook

    def by(self, p):
        """The rank among those that share the data parallelism of a parameter: ranks of one mesh of tensor parallelism hold
        parts of one gradient."""
        if self._mesh is None:
            meshes = [q.device_mesh for q in self.moved() if hasattr(q, "device_mesh")] or [m for m in map(names.mesh, self.roots) if m is not None]
            self._mesh = meshes[:1]
        for mesh in [p.device_mesh] if hasattr(p, "device_mesh") else self._mesh if self.tensor_parallel else ():
            if id(mesh) not in self._ranks:
                ranks = mesh.mesh.flatten().tolist()
                consecutive = ranks == list(range(ranks[0], ranks[0] + len(ranks)))
                self._ranks[id(mesh)] = ranks[0] // len(ranks) if consecutive else ranks[0]
            return self._ranks[id(mesh)]
        return self._recorder.rank

    def _hook_batches(self, recorder):
        @guarded
        def batch(module, args, kwargs=None):
            if pipelining.is_later(module):  # it gets activations
                self.sees_forward = False
            elif torch.is_grad_enabled() and recorder.due():
                recorder.samples(_tensors((args, kwargs or {})), _targets((args, kwargs or {}), names.shifts(module)))

        @guarded
        def forward(module, *_):
            if torch.is_grad_enabled():
                recorder.forward(computed_in())

        for root in self.roots:
            if not hasattr(root, "register_forward_pre_hook"):
                continue
            inner = names.inner(root) if hasattr(root, "_modules") else root
            self._around(root if self.calls_past_hooks or names.compiled(root) else inner, batch)
            self.sees_forward = True
        if self.roots and hasattr(self.roots[0], "register_forward_pre_hook"):
            self._around(self.roots[0], forward, lambda *_: recorder.left())
            self._hook_outputs(recorder)

    def _around(self, module, before, after=None):
        """Hooks of a module's forward. torch.compile would compile them too, or break its graph at them: of a module that is
        compiled in place they stand outside. Of a module in Lightning's trainer they are those of its step."""
        if in_trainer(module):
            self._handles.append(Called(module, "training_step", before, after))
            return

        def pre(module, args, kwargs=None):
            if not is_compiling():
                before(module, args, kwargs)

        def post(module, args, made):
            if not is_compiling():
                after(module, args, made)

        try:
            self._handles.append(module.register_forward_pre_hook(pre, with_kwargs=True))
        except TypeError:  # torch 1.13
            self._handles.append(module.register_forward_pre_hook(pre))
        if after is not None:
            self._handles.append(module.register_forward_hook(post))
        self._watched.append((module, before, after))
        self.outside()

    def outside(self):
        """Takes the hooks out of what was compiled in place since."""
        for module, before, after in self._watched:
            call = getattr(module, "_compiled_call_impl", None)
            if call is not None and (before, after) not in getattr(call, "zs_probe", ()):
                self._handles.append(Called(module, "_compiled_call_impl", before, after))

    def _hook_outputs(self, recorder):
        """Of the modules whose names fit one of the patterns what they make."""
        chosen = [(name, module) for root in self.roots if hasattr(root, "_modules") for name, module in names.modules(root)
                  if name and not names.wrapped(module) and any(fnmatch.fnmatchcase(name, p) for p in recorder.patterns)]
        for pattern in recorder.patterns:
            if not any(fnmatch.fnmatchcase(name, pattern) for name, _ in chosen):
                self.unseen.append(f"no module has a name like {pattern}: nothing is recorded of its outputs")

        def hook_of(name):
            @guarded
            def output(made):
                tensors = _tensors(made if not hasattr(made, "to_tuple") else made.to_tuple())
                if tensors:
                    recorder.output(name, tensors[0])

            def hook(module, args, made):
                if not is_compiling():
                    output(made)

            return hook

        for name, module in chosen:
            self._handles.append(module.register_forward_hook(hook_of(name)))


class FlatLayout(Layout):
    """The optimizer moves flat tensors. slices() says what is in them."""

    def slices(self):
        """{id(flat): [Slice]}, in the same order on every rank."""
        raise NotImplementedError

    def gradients(self, optimizer):
        cut = self.slices()
        for group in optimizer.param_groups:
            place = self.place(group)
            for flat in group["params"]:
                gradient = self.gradient(flat)
                for s in cut.get(id(flat), ()):
                    if gradient is not None:
                        yield f"{place}/{s.name}", s.of(gradient), s.part

    def place(self, group):
        return "direction" if group.get("use_muon") else "grad"  # orthogonalised before this optimizer gets it

    def gradient(self, flat):
        return flat.grad

    def states(self):
        cut = self.slices()
        for flat, state in [item for optimizer in self.optimizers for item in optimizer.state.items()]:
            for key, value in (state or {}).items() if isinstance(state, dict) else ():
                if torch.is_tensor(value) and value.numel() == flat.numel() and value.dim() > 0:
                    for s in cut.get(id(flat), ()):
                        yield f"state.{key}/{s.name}", s.of(value), s.part

    def counters(self):
        for optimizer in self.optimizers:  # its groups may be empty between steps, as ZeRO-3's are
            for flat, state in optimizer.state.items():
                step = state.get("step") if isinstance(state, dict) else None
                if isinstance(step, (int, float)) or (torch.is_tensor(step) and step.numel() == 1):
                    yield self.called(flat), step

    def flats(self):
        """The flat tensors."""
        return self.moved()

    def loose(self):
        return []

    def called(self, p):
        return [s.name for s in self.slices().get(id(p), ())]

    def parameters(self):
        cut = self.slices()
        for flat in self.flats():
            for s in cut.get(id(flat), ()):
                yield f"param/{s.name}", s.of(flat), s.part


def computed_in():
    """The type of autocast, or None."""
    if torch.is_autocast_enabled():
        return type_name(torch.get_autocast_gpu_dtype())
    if torch.is_autocast_cpu_enabled():
        return type_name(torch.get_autocast_cpu_dtype())
    return {"bf16": "BF16", "fp16": "F16"}.get(os.environ.get("ACCELERATE_MIXED_PRECISION", ""))


def in_trainer(module):
    """Whether a trainer of Lightning calls the module: by its training_step, which need not call its forward."""
    return getattr(module, "_trainer", None) is not None and callable(getattr(module, "training_step", None))


def is_compiling():
    """Whether torch.compile looks at the code that runs."""
    asked = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    return asked() if asked else False


def _plain(value):
    if torch.is_tensor(value):
        return value.detach() if value.numel() == 1 else None
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(key): _plain(v) for key, v in value.items()}
    if isinstance(value, (int, float, str, bool)) or value is None:
        return value
    return getattr(value, "__qualname__", type(value).__qualname__)  # whose text may have an address


def _version(tensor):
    """What tells that a tensor was written, or is another one."""
    try:
        return tensor.data_ptr(), tensor._version
    except (RuntimeError, AttributeError):  # of inference mode, or without storage
        return None


def _tensors(value):
    """The tensors in nested arguments, in order."""
    if torch.is_tensor(value):
        return [value]
    if isinstance(value, dict):
        return [t for key in sorted(value, key=str) for t in _tensors(value[key])]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _tensors(v)]
    return []


def _targets(value, shifts=False):
    """How many labels of a batch the loss counts: of the tensor that a mapping in nested arguments calls labels. None: there is
    none. shifts: the first label of a sample is no target."""
    if isinstance(value, dict):
        labels = value.get("labels")
        if torch.is_tensor(labels):
            labels = labels.detach()
            return ((labels[:, 1:] if shifts and labels.dim() == 2 else labels) != _IGNORED).sum()
        value = [value[key] for key in sorted(value, key=str)]
    if isinstance(value, (list, tuple)):
        return next((found for found in (_targets(one, shifts) for one in value) if found is not None), None)
    return None


__all__ = ["FlatLayout", "Layout", "Part", "Slice"]
