# SPDX-License-Identifier: Apache-2.0
"""One name of a parameter under every wrapper."""
import re

import torch

from .part import Part, is_dtensor

# A class of wrapper, and the attribute that holds the wrapped module. Names leave out this attribute.
_WRAPPERS = {
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "DeepSpeedEngine": "module",
    "MegatronFSDP": "module",
    "Float16Module": "module",
    "OptimizedModule": "_orig_mod",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
    "CheckpointWrapper": "_checkpoint_wrapped_module",
    "OffloadWrapper": "_checkpoint_wrapped_module",
    "_FabricModule": "_forward_module",
    "_LightningModuleWrapperBase": "_forward_module",
    "PeftModel": "base_model",
    "BaseTuner": "model",
}


def wrapped(module):
    """The name of the attribute that holds what `module` wraps; None for a module that wraps none."""
    for kind in type(module).__mro__:
        name = _WRAPPERS.get(kind.__name__)
        if name is not None and name in getattr(module, "_modules", {}):
            return name
    return None


def inner(module):
    """The module without its wrappers."""
    while wrapped(module):
        module = module._modules[wrapped(module)]
    return module


def compiled(root):
    """Whether torch.compile has what `root` wraps, or `root` itself."""
    module = root
    while True:
        if type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None:
            return True
        if not hasattr(module, "_modules") or not wrapped(module):
            return False
        module = module._modules[wrapped(module)]


def shifts(module):
    """Whether a module compares each position with the label of the next one, as transformers' language models do."""
    return any(word in type(inner(module)).__name__ for word in ("ForCausalLM", "LMHeadModel"))


def modules(root):
    """(canonical name, module) of each module, with its wrappers; "" is the root's."""
    found, seen = [], set()

    def walk(module, name):
        if id(module) in seen:
            return
        seen.add(id(module))
        found.append((name, module))
        hidden = wrapped(module)
        for key, child in module._modules.items():
            if child is None or key == "parametrizations":
                continue
            walk(child, name if key == hidden else f"{name}.{key}" if name else key)
        if "parametrizations" in module._modules:  # of W the tensor `original` is trained
            for key, child in module._modules["parametrizations"]._modules.items():
                found.append((f"{name}.{key}" if name else key, child))

    walk(root, "")
    return found


def _expert(name, parameter):
    """DeepSpeed counts the experts of each rank from 0: theirs are counted over the ranks that share them."""
    group = getattr(parameter, "group_name", None)
    if group is None or getattr(parameter, "allreduce", True):
        return name
    try:
        from deepspeed.utils import groups
        rank = groups._get_expert_parallel_rank(group)
        local = parameter.zs_local_experts
    except Exception:  # noqa: BLE001  another version of DeepSpeed: the name as it is
        return name
    return re.sub(r"(deepspeed_experts\.)(\d+)", lambda m: m[1] + str(int(m[2]) + rank * local), name, count=1)


def parameters(root):
    """{id(parameter): name} and {name: [other names of it]}: of a tied parameter the first name counts."""
    names, ties = {}, {}
    for path, module in modules(root):
        experts = module._modules.get("deepspeed_experts") if hasattr(module, "_modules") else None
        if experts is not None:
            for parameter in experts.parameters():
                parameter.zs_local_experts = len(experts)
        for key, parameter in getattr(module, "_parameters", {}).items():
            if parameter is None:
                continue
            name = path if key == "original" and type(module).__name__ == "ParametrizationList" else f"{path}.{key}" if path else key
            name = _expert(name, parameter)
            if id(parameter) not in names:
                names[id(parameter)] = name
            elif names[id(parameter)] != name:
                ties.setdefault(names[id(parameter)], []).append(name)
    return names, ties


def mesh(root):
    """The ranks that transformers gives slices of one model, where its parameters are no DTensors; None: there are none."""
    found = getattr(inner(root), "_device_mesh", None)
    return found if found is not None and getattr(found, "ndim", 0) == 1 and torch.distributed.is_initialized() else None


def experts(root):
    """{name: Part} of those slices: of the experts that the configuration counts each rank has some."""
    ranks, config = mesh(root), getattr(inner(root), "config", None)
    count = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None)
    found = {}
    for path, module in modules(root) if ranks is not None and count else ():
        for key, p in getattr(module, "_parameters", {}).items() if path.endswith("experts") else ():
            if p is not None and not is_dtensor(p) and p.dim() and p.shape[0] * ranks.size() == count:
                shape = [count, *p.shape[1:]]
                found[f"{path}.{key}"] = Part(shape, ranks.get_local_rank() * p.numel(), p.numel())
    return found
