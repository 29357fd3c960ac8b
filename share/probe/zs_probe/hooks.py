# SPDX-License-Identifier: Apache-2.0
"""The hooks of a layout: around its optimizers' steps, its parameters' gradients, and the forward of its modules."""
import fnmatch
import functools
import os
import types

import torch

from . import names, pipelining
from .part import Unseen
from .say import guarded, unseen
from .writer import type_name

_IGNORED = -100  # what PyTorch's cross-entropy leaves out where it is not told otherwise


class Restored:
    """Gives an object its own method back."""

    def __init__(self, of, method, name="step"):
        self.of, self.method, self.name = of, method, name

    def remove(self):
        setattr(self.of, self.name, self.method)


class Called:
    """Hooks around a method: the call of a module that is compiled in place, with its own hooks, Lightning's step, what reduces gradients."""

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


class Hooks:
    """The part of a Layout that watches its training. It tells a recorder what it sees."""

    tensor_parallel = True  # where parameters are DTensors, it is by tensor parallelism
    sees_forward = False  # whether a module's forward tells of batches
    calls_past_hooks = False  # whether a wrapper calls forward() of what it wraps
    _hooked = None  # ids of the parameters whose gradients are hooked one by one

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
        self._handles, self._watched, self._hooked = [], [], None

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
        self._hooked = self._hooked if self._hooked is not None else set()
        for p in [p for optimizer in optimizers or self.optimizers for group in optimizer.param_groups for p in group["params"]]:
            if p.requires_grad and p.is_leaf and id(p) not in self._hooked:
                self._hooked.add(id(p))
                self._handles.append(p.register_hook(self._local_hook(recorder, known.get(id(p)), p)))

    def follow(self):
        """Hooks of what is trained since: parameters that are frozen no more, those of a group that was added."""
        if self._hooked is not None and any(p.requires_grad and id(p) not in self._hooked for p in self.moved()):
            self._hook_gradients(self._recorder)

    def _local_hook(self, recorder, name, p, owner=None, root=None):
        """owner: says of a gradient how it is read later; see Recorder.local(). root: the number of its module; None: of that which has p."""
        if root is None:
            root = next((i for i, one in enumerate(self.roots) if len(self.roots) > 1 and hasattr(one, "parameters") and any(p is q for q in one.parameters())), 0)
        by = functools.lru_cache(None)(lambda: self.by(p))

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
            if p.grad is None and called in recorder.micro.waiting and id(p) in self.names():  # the training has set it to None
                recorder.micro.drop({n for q in self.moved() if q.grad is None for n in self.called(q)})
            summands = 0 if part.summand is None else self._recorder.world_size * part.summand  # each counts for itself
            recorder.local(called, flat, part, by() + summands, root, owner and owner(gradient))

        def hook(gradient):
            if recorder.due() and not is_compiling() and not pipelining.is_preparing():
                local(gradient)

        return hook

    def by(self, p):
        """The rank among those that share the data parallelism of a parameter: ranks of one mesh of tensor parallelism hold
        parts of one gradient. A mesh of experts is none: each of its ranks has samples of its own."""
        if self._mesh is None:
            meshes = [q.device_mesh for q in self.moved() if hasattr(q, "device_mesh") and tuple(q.device_mesh.mesh_dim_names or ()) != ("ep",)]
            self._mesh = (meshes or [m for m in map(names.mesh, self.roots) if m is not None])[:1]
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
            elif computes() and recorder.due():
                recorder.samples(tensors_in((args, kwargs or {})), _targets((args, kwargs or {}), names.shifts(module)))

        @guarded
        def forward(module, *_):
            if computes():
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
                tensors = tensors_in(made if not hasattr(made, "to_tuple") else made.to_tuple())
                if tensors:
                    recorder.output(name, tensors[0])

            def hook(module, args, made):
                if not is_compiling():
                    output(made)

            return hook

        for name, module in chosen:
            self._handles.append(module.register_forward_hook(hook_of(name)))


def computes():
    """Whether a forward is one of the training."""
    return torch.is_grad_enabled() and not pipelining.is_preparing()


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


# Whether torch.compile looks at the code that runs.
is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)


def is_texts(value):
    """Names of parameters: some hundreds in each group."""
    return len(value) > 0 and all(isinstance(one, str) for one in value)


def tensors_in(value):
    """The tensors in nested values, in order."""
    if torch.is_tensor(value):
        return [value]
    if isinstance(value, dict):
        return [t for key in sorted(value, key=str) for t in tensors_in(value[key])]
    if isinstance(value, (list, tuple)):
        return [] if is_texts(value) else [t for v in value for t in tensors_in(v)]
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
