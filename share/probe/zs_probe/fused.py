# SPDX-License-Identifier: Apache-2.0
"""TransformerEngine's FusedAdam. It can read gradients that lie beside parameters, keep moments in few bits with a scale, and hold the
masters of parameters of 16 bits itself: whole, with a scale, or as the 16 bits that a bfloat16 parameter lacks to float32."""
import torch

_KEPT = {torch.uint8: getattr(torch, "float8_e4m3fn", torch.uint8)}  # how it names the types of states


def is_fused(optimizer):
    return callable(getattr(optimizer, "get_unscaled_state", None)) and hasattr(optimizer, "name_to_dtype_map")


def holds_masters(optimizer):
    return is_fused(optimizer) and bool(getattr(optimizer, "master_weights", False))


def gradient(p):
    """What an optimizer reads: beside the parameter where their types differ."""
    beside = getattr(p, "decoupled_grad", None)
    return p.grad if beside is None else beside


def state(optimizer, p, key, value):
    """(values, the type that they are kept in) of a state; None: it is no moment."""
    if not is_fused(optimizer) or key not in optimizer.name_to_dtype_map:
        return value, value.dtype
    kept = optimizer.name_to_dtype_map[key]
    if key == "master_param":
        return None
    if kept in (torch.float32, torch.bfloat16):
        return value, kept
    return optimizer.get_unscaled_state(p, key), _KEPT.get(kept, kept)


def master(optimizer, p):
    """(values, the type that they are kept in) of what the optimizer moves. Of a float32 parameter that is the parameter: the master
    beside it is a copy that no step writes."""
    if not holds_masters(optimizer) or p.dtype not in (torch.bfloat16, torch.float16) or hasattr(p, "placements"):
        return p, p.dtype
    held = (optimizer.state.get(p) or {}).get("master_param")
    if held is None:  # no step was made
        return p.detach().float(), torch.float32
    if held.dtype != torch.int16:
        return optimizer.get_unscaled_state(p, "master_param"), held.dtype
    high = p.detach().view(torch.int16) - (held < 0).to(torch.int16)  # which were rounded up
    return ((high.to(torch.int32) << 16) | (held.to(torch.int32) & 0xFFFF)).view(torch.float32), torch.float32
