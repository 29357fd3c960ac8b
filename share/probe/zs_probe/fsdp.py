# SPDX-License-Identifier: Apache-2.0
"""FSDP of torch: FSDP1's flat parameters, and FSDP2's gradients before they are reduced. Megatron-FSDP."""
import torch

from . import names
from .hooks import Called
from .layouts import FlatLayout, Layout
from .part import Part
from .say import guarded
from .slices import Slice


def handles(roots):
    """(canonical name of the FSDP1 module, its handle)."""
    return [(name, module._handle) for root in roots if hasattr(root, "_modules") for name, module in names.modules(root)
            if getattr(module, "_handle", None) is not None and hasattr(module._handle, "flat_param")]


def _strip(fqn):
    for text in ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "_orig_mod."):
        fqn = fqn.replace(text, "")
    return fqn


class Fsdp1(FlatLayout):
    """Flat parameters, or, with use_orig_params, the pieces of them that are called parameters."""

    name = "FSDP1"

    def _parameters(self):
        """(name, shape, shard info, the user's parameter or None, the flat one)."""
        for path, handle in handles(self.roots):
            flat = handle.flat_param
            users = getattr(flat, "_params", None) or [None] * len(flat._fqns)
            for fqn, shape, info, user in zip(flat._fqns, flat._shapes, flat._shard_param_infos, users):
                fqn = _strip(fqn)
                yield f"{path}.{fqn}" if path else fqn, shape, info, user, flat

    def slices(self):
        cut = {}
        for name, shape, info, user, flat in self._parameters():
            count = info.numel_in_shard if info.in_shard else 0
            part = Part(shape, info.intra_param_start_idx if info.in_shard else 0, count or 0)
            if user is None:
                cut.setdefault(id(flat), []).append(Slice(name, part, info.offset_in_shard or 0))
            else:
                cut[id(user)] = [Slice(name, part, 0)]
        return cut

    def names(self):
        found = {}
        for name, _, _, user, flat in self._parameters():
            found[id(flat if user is None else user)] = name
        return found

    def gradient(self, flat):
        return flat.grad

    def _hook_gradients(self, recorder, optimizers=None):
        for path, handle in handles(self.roots) if optimizers is None else ():  # a further one finds them there
            if handle.flat_param.requires_grad:
                self._handles.append(handle.flat_param.register_hook(self._flat_hook(recorder, path, handle.flat_param)))

    def _flat_hook(self, recorder, path, flat):
        @guarded
        def hook(gradient):
            if not recorder.due():
                return
            at, number = 0, 0
            padding = getattr(flat, "_is_padding_mask", [False] * len(flat._numels_with_padding))
            for size, is_padding in zip(flat._numels_with_padding, padding):
                if not is_padding:
                    fqn = _strip(flat._fqns[number])
                    name = f"{path}.{fqn}" if path else fqn
                    recorder.local(name, gradient.detach().reshape(-1)[at:at + size], Part(flat._shapes[number]), recorder.rank)
                    number += 1
                at += size

        return hook


def is_fsdp2(root):
    return hasattr(root, "modules") and any(k.__name__ == "FSDPModule" for m in root.modules() for k in type(m).__mro__)


_REDUCES = "post_backward"  # the method of a group that reduces its gradients


class Fsdp2(Layout):
    """Parameters are DTensors. The gradient of a micro-batch is that of the whole parameter, which exists from the first
    forward on. Those of a group are read at once, when FSDP2 is about to reduce them: each was its parameter's only one, and
    no other hook has seen it. All others are read one by one."""

    name = "FSDP2"
    tensor_parallel = False  # a whole parameter is a DTensor where both meet

    def _hook_gradients(self, recorder, optimizers=None):
        if optimizers is not None:  # a further one: the parameters' hooks are there
            return
        hooked, sharded = {}, []

        @guarded
        def find(*_):
            if not sharded:
                for root, group in self._groups():
                    key = id(group) if hasattr(group, _REDUCES) else None  # None: another PyTorch, one by one
                    if key is not None:
                        self._handles.append(Called(group, _REDUCES, lambda *_, key=key: recorder.waited(key), None))
                    sharded.extend((held, key, root) for held in group.fsdp_params)
            for held, key, root in sharded:
                whole = getattr(held, "_unsharded_param", None)
                if whole is None or hooked.get(id(held)) is whole or not whole.requires_grad:
                    continue
                hooked[id(held)] = whole
                name = self.names().get(id(held.sharded_param))
                owner = None if key is None else _owner(recorder, key, whole)
                self._handles.append(whole.register_hook(self._local_hook(recorder, name, whole, owner, root)))

        for root in self.roots:
            if hasattr(root, "register_forward_hook"):
                self._around(root, lambda *_: None, find)

    def _groups(self):
        """(number of the module, FSDP2's group of parameters), once a forward was run: no module has whole parameters behind it."""
        for number, root in enumerate(self.roots):
            for _, module in names.modules(root) if hasattr(root, "_modules") else ():
                state = module._get_fsdp_state() if hasattr(module, "_get_fsdp_state") else None
                if hasattr(getattr(state, "_fsdp_param_group", None), "fsdp_params"):
                    yield number, state._fsdp_param_group


def _owner(recorder, key, whole):
    """What says of a gradient of a whole parameter that .grad has it after this hook, until its group is reduced."""

    def owner(gradient):
        if type(gradient) is torch.Tensor and whole.grad is None and gradient.dtype == whole.dtype and len(whole._backward_hooks) == 1 \
                and not getattr(whole, "_post_accumulate_grad_hooks", None):
            return key, whole
        recorder.waited(key)  # what .grad has now is an earlier one, to which this one is added
        return None

    return owner


def _moved(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


class MegatronFsdp(Layout):
    """Its DTensors are cut from a flat buffer, wherever its share ends. A micro-batch's gradient is that of the module's own parameter."""

    calls_past_hooks = True

    def __init__(self, roots, optimizer):
        self._cuts = {}  # of a parameter's name (its shape, the first element that this rank has)
        Layout.__init__(self, roots, optimizer)

    def kind(self):
        self.name = "Megatron-FSDP"

    def part(self, name, tensor):
        local = tensor._local_tensor.reshape(-1)
        if name not in self._cuts:
            p = next(p for p in self.moved() if self.names().get(id(p)) == name)
            self._cuts[name] = p.shape, next((self._begin_in(root.param_and_grad_buffer, p.orig_param) for root in self.roots if hasattr(root, "param_and_grad_buffer")), 0)
        shape, begin = self._cuts[name]
        return local, Part(shape, begin if local.numel() < shape.numel() else 0, local.numel())

    def _begin_in(self, held, p):
        """The first element of a parameter that this rank has."""
        group = held.parameter_groups[held.param_to_param_group[p]]
        buffer = group.main_weight_buffer or group.model_weight_buffer or group.main_grad_buffer
        return max(0, buffer.shard_bucket_index.global_data_index - buffer.item_index_map[buffer.param_idx[p]].global_data_index)

    def by(self, p):
        return self._recorder.rank

    def _hook_gradients(self, recorder, optimizers=None):
        known = self.names()
        for p in (p for optimizer in optimizers or self.optimizers for p in _moved(optimizer)):
            self._handles.append(p.orig_param.register_hook(self._whole_hook(recorder, known.get(id(p)), p)))

    def _whole_hook(self, recorder, name, p):
        part = Part(p.shape)

        @guarded
        def hook(gradient):
            if recorder.due() and name:
                recorder.local(name, gradient.detach().reshape(-1), part, self.by(p))

        return hook


def layout(roots, optimizer):
    """FSDP's layout of these modules, or None."""
    if any(hasattr(p, "orig_param") for p in _moved(optimizer)):
        return MegatronFsdp(roots, optimizer)
    if handles(roots):
        return Fsdp1(roots, optimizer)
    if any(is_fsdp2(root) for root in roots):
        return Fsdp2(roots, optimizer)
    return None


