# SPDX-License-Identifier: Apache-2.0
"""What an optimizer of torch holds: parameters of modules, whole or as DTensors, or flat ones that another part of the
framework cuts (Slices). A layout shows tensors as (PLACE/NAME, flat values, Part)."""
import gc

import torch

from . import fused, names, pipelining, schedules
from .hooks import Hooks
from .part import PLAIN, Unseen, held
from .say import unseen
from .slices import pieces

_SHARES = "ZeroRedundancyOptimizer"
_SMALL = 1 << 16  # elements of a buffer


class Layout(Hooks):
    """Parameters of `roots` that its optimizers move: several where a model has several."""

    name, framework = "plain", ""

    def __init__(self, roots, optimizer):
        self._mesh, self._ranks, self._ordered = None, {}, (None, {})
        self.optimizers, self.roots, self.unseen, self.ties = [optimizer], roots, [], {}
        self._named_ids, self._by_id = None, None  # ids of the parameters when they were looked up, and {id: name}
        self.frozen, self._handles, self._recorder, self._watched = [], [], None, []
        self._buffers, self._changed = None, set()
        self._labels, self._known_lists, self._states, self._cuts = {}, {}, None, {}  # by place and name; _alike(); states(); _pieces()
        self.cut = {}  # by name the Part of a parameter that is no DTensor and that this rank has in part
        self.types = {}  # of what is shown in another type than it is kept in that type

    @property
    def optimizer(self):
        return self.optimizers[0]

    def add(self, optimizer):
        """Another optimizer of the same model."""
        self.optimizers.append(optimizer)
        self._by_id, self._mesh, self._ordered = None, None, (None, {})
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
        if self._by_id is None or self._named_ids != held_now:
            found, of_roots = {}, []
            for root in self.roots:
                if hasattr(root, "_modules"):
                    self.cut.update(names.experts(root))
                    of_root, ties = self.of_root(root)
                    self.ties.update(ties)
                else:
                    of_root = {id(p): n for n, p in root.named_parameters()}
                of_roots.append(of_root)
            for of_root in pipelining.apart(self.roots, of_roots):
                for key, name in of_root.items():
                    found.setdefault(key, name)
            self._named_ids, self._by_id, self._known_lists = held_now, found, {}
            self.kind()
        return self._by_id

    def of_root(self, root):
        """{id(parameter): name}, {name: [other names]} of a module's."""
        return names.parameters(root)

    def part(self, name, tensor):
        """(values, Part) of what this rank holds of a tensor that belongs to a parameter. Raises Unseen."""
        if tensor.layout != torch.strided:
            raise Unseen("it is sparse")
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
        if any(type(one).__name__ == _SHARES for one in self.optimizers):
            self.name += " with " + _SHARES

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
        if self._ordered[0] is not known:
            self._ordered = known, {}
        found = self._ordered[1].get(key)
        if found is None:
            order = {key: i for i, key in enumerate(known)}
            pairs = [(known.get(id(p), f"unnamed.{i}"), p) for i, p in enumerate(parameters)]
            found = self._ordered[1][key] = sorted(pairs, key=lambda pair: order.get(id(pair[1]), len(order)))
        return found

    # ---- what a step shows -------------------------------------------------------------------------------------------
    def devices(self):
        return {p.device for p in self.moved() if p.device.type != "meta"}

    def steps_before(self):
        """Steps that the optimizers made before: of a training that resumed. None: they do not count them."""
        for optimizer in map(keeper, self.optimizers):
            for state in optimizer.state.values():
                step = state.get("step") if isinstance(state, dict) else None
                if step is not None:
                    return int(step.item() if torch.is_tensor(step) else step)
            for _, step in self.counted(optimizer):
                return int(step.item() if torch.is_tensor(step) else step)
        return None

    def called(self, p):
        """The names of the parameters that lie in a tensor which an optimizer moves."""
        known = self.names() if self._by_id is None else self._by_id
        return [known.get(id(p), "unnamed")]

    def counters(self):
        """(names, what the optimizer's state has as its number of steps)."""
        for optimizer in map(keeper, self.optimizers):
            yield from self.counted(optimizer)
            for group in optimizer.param_groups:
                for p in group["params"]:
                    step = _number(optimizer.state.get(p))
                    if step is not None:
                        yield self.called(p), step

    def counted(self, optimizer):
        """The same where a group counts, as apex's and TransformerEngine's do."""
        for group in optimizer.param_groups:
            step = _number(group)
            if step is not None and group["params"] and not any(isinstance(s, dict) and "step" in s for s in optimizer.state.values()):
                yield [name for p in group["params"] for name in self.called(p)], step

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
        return [{**{key: _plain(value) for key, value in group.items() if key not in ("params", "step")}, **_kind(keeper(optimizer), group),
                 "params": [name for p in group["params"] for name in self.called(p)]}
                for group in optimizer.param_groups if group["params"]]

    def _seen(self, place, name, tensor):
        """[what is shown of a tensor], or [] where it cannot be read."""
        try:
            flat, part = self.part(name, tensor)
            if part.summand is not None and place != "grad":
                raise Unseen("its values are summands of several ranks (Partial)")
        except Unseen as error:
            unseen(f"{place} of {name} is not recorded: {error}")
            return ()
        return ((self.label(place, name), flat, part),)

    def _alike(self, kind, said, tensors):
        """What is shown of tensors, one after another; said: (place, name) of each. Where they are as at the last call of this kind, their
        parts are known."""
        types = set(map(type, tensors))
        if types <= PLAIN:
            flats, marks = tensors, [(tensor.shape, tensor.layout) for tensor in tensors]
        elif len(types) == 1 and hasattr(tensors[0], "_spec"):
            flats = [tensor._local_tensor for tensor in tensors]
            marks = [(tensor._spec, flat.shape) for tensor, flat in zip(tensors, flats)]
        else:
            flats, marks = None, None
        known = self._known_lists.get(kind)
        if known is not None and marks is not None and known[0] == said and known[1] == marks and set(map(type, flats)) <= PLAIN:
            return zip(known[2], flats, known[3])
        made = [one for (place, name), tensor in zip(said, tensors) for one in self._seen(place, name, tensor)]
        if made and marks is not None and len(made) == len(tensors) and all(one[1] is flat for one, flat in zip(made, flats)):
            self._known_lists[kind] = said, marks, [label for label, _, _ in made], [part for _, _, part in made]
        return made

    def label(self, place, name):
        """PLACE/NAME, always the same text, whose hash is known."""
        key = (place, name)
        known = self._labels.get(key)
        if known is None:
            known = self._labels[key] = f"{place}/{name}"
        return known

    def gradients(self, optimizer):
        scale = getattr(optimizer, "grad_scale", None)  # of GradScaler, for optimizers that unscale by themselves
        held = [(("grad", name), fused.gradient(p)) for name, p in self.ordered([p for g in optimizer.param_groups for p in g["params"]])]
        held = [one for one in held if one[1] is not None]
        if scale is None:
            return self._alike(id(optimizer), *zip(*held)) if held else ()
        return (one for said, gradient in held for one in self._seen(*said, gradient / scale))

    def states(self):
        if any(map(fused.is_fused, self.optimizers)):
            return self._fused_states()
        ordered = self.ordered(self.moved())
        held = [(id(p), state) for optimizer in map(keeper, self.optimizers) for p, state in optimizer.state.items()]
        marks, known = [(key, len(state or ())) for key, state in held], self._states
        tensors = known.tensors(held) if known is not None and known.ordered is ordered and known.marks == marks else None
        if tensors is None or not known.are(tensors):
            known = self._states = _States(ordered, marks, held)
            tensors = known.tensors(held)
        return self._alike("state", known.said, tensors)

    def _fused_states(self):
        mover = self.movers()
        for name, p in self.ordered(self.moved()):
            for key, value in (mover[id(p)].state.get(p) or {}).items():
                shown = fused.state(mover[id(p)], p, key, value) if _is_state(key, value, p) else None
                if shown is not None:
                    yield from self._seen(f"state.{key}", name, self._typed(f"state.{key}/{name}", *shown))

    def parameters(self):
        if not self.makes():
            held = [(("param", name), p) for name, p in self.ordered(self.moved())]
            return self._alike("param", *zip(*held)) if held else ()
        return self._made_parameters()

    def _made_parameters(self):
        mover = self.movers()
        for name, p in self.ordered(self.moved()):
            values, kept = fused.master(mover[id(p)], p)
            yield from self._seen("param", name, self._typed(f"param/{name}", values, kept))
            if values is not p:
                yield from self._seen("model", name, p)

    def movers(self):
        """{id of a tensor that is moved: its optimizer}."""
        return {id(p): optimizer for optimizer in self.optimizers for group in optimizer.param_groups for p in group["params"]}

    def makes(self):
        """Whether tensors are made to be shown: not all are held at once then."""
        return any(fused.holds_masters(optimizer) for optimizer in self.optimizers)

    def _typed(self, name, values, kept):
        if values.dtype != kept:
            self.types[name] = kept
        return values


def keeper(optimizer):
    """The optimizer that has the state: that of this rank's share inside PyTorch's ZeRO-1."""
    return optimizer.optim if type(optimizer).__name__ == _SHARES else optimizer


def _is_state(key, value, p):
    """Whether an optimizer's value is one for each element of a parameter."""
    return key != "step" and torch.is_tensor(value) and value.shape == p.shape


class _States:
    """Where optimizers hold what they have of each parameter in its shape. It keeps no tensor alive."""

    def __init__(self, ordered, marks, held):
        self.ordered, self.marks, self.said, self._at, self._shapes, self._all = ordered, marks, [], [], [], True
        number = {key: n for n, (key, _) in enumerate(held)}
        for name, p in ordered:
            n = number.get(id(p))
            for key, value in (held[n][1] or {}).items() if n is not None else ():
                if _is_state(key, value, p):
                    self.said.append((f"state.{key}", name))
                    self._at.append((n, key))
                    self._shapes.append(p.shape)
                elif key != "step":
                    self._all = False  # it may be such a tensor at the next call

    def tensors(self, held):
        return [held[n][1].get(key) for n, key in self._at]

    def are(self, tensors):
        """Whether these are all that there are."""
        return self._all and [getattr(tensor, "shape", None) for tensor in tensors] == self._shapes


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
                if gradient is not None:
                    yield from self._pieces(place, cut.get(id(flat), ()), gradient)

    def place(self, group):
        return "direction" if group.get("use_muon") else "grad"  # orthogonalised before this optimizer gets it

    def gradient(self, flat):
        return fused.gradient(flat)

    def states(self):
        cut = self.slices()
        for optimizer, flat, state in [(optimizer, *item) for optimizer in self.optimizers for item in optimizer.state.items()]:
            for key, value in (state or {}).items() if isinstance(state, dict) else ():
                if torch.is_tensor(value) and value.numel() == flat.numel() and value.dim() > 0:
                    shown = fused.state(optimizer, flat, key, value)
                    if shown is not None:
                        yield from self._pieces(f"state.{key}", cut.get(id(flat), ()), *shown)

    def counters(self):
        for optimizer in self.optimizers:  # its groups may be empty between steps, as ZeRO-3's are
            yield from self.counted(optimizer)
            for flat, state in optimizer.state.items():
                step = _number(state)
                if step is not None:
                    yield self.called(flat), step

    def flats(self):
        """The flat tensors."""
        return self.moved()

    def loose(self):
        return []

    def called(self, p):
        return [s.name for s in self.slices().get(id(p), ())]

    def parameters(self):
        cut, mover = self.slices(), self.movers()
        for flat in self.flats():
            yield from self._pieces("param", cut.get(id(flat), ()), *fused.master(mover.get(id(flat)), flat))

    def _pieces(self, place, slices, values, kept=None):
        """What is shown of the slices of a flat tensor."""
        key = place, id(slices)
        known = self._cuts.get(key)
        if known is None or known[0] is not slices:
            if len(self._cuts) >= 256:
                self._cuts.clear()
            known = self._cuts[key] = slices, [self.label(place, s.name) for s in slices], [s.part for s in slices]
        if kept not in (None, values.dtype):
            self.types.update(dict.fromkeys(known[1], kept))
        return zip(known[1], pieces(slices, values) if slices else (), known[2])


def _number(held):
    """The number of steps that a state or a group counts; None: it has none."""
    step = held.get("step") if isinstance(held, dict) else None
    return step if isinstance(step, (int, float)) or (torch.is_tensor(step) and step.numel() == 1) else None


def _kind(optimizer, group):
    """The class; its package where that is not torch; tags: what a training added to the options of the class."""
    found, package = {"optimizer": type(optimizer).__name__}, type(optimizer).__module__.partition(".")[0]
    if package != "torch":
        found["package"] = package
    tags = sorted(str(key) for key in set(group).difference(getattr(optimizer, "defaults", ()), ("params", "step", "initial_lr")))
    if tags:
        found["tags"] = tags
    if "decoupled_weight_decay" not in group and getattr(optimizer, "adam_w_mode", True) in (False, 0):  # DeepSpeed, apex
        found["decoupled_weight_decay"] = False
    return found


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
