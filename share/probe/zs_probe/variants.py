# SPDX-License-Identifier: Apache-2.0
"""Other ways to score the same tokens, which tell how a generator differs from its trainer."""
import contextlib

UNITS = {"F32": 2.0 ** -23, "F16": 2.0 ** -10, "BF16": 2.0 ** -7}  # the largest unit in the last place of a number, relative to it


def variants(trainer, kept, model, mask, heats):
    """(name, context, arguments) under which the trainer may score as the generator draws. `kept`: (step, weights)."""
    nothing = contextlib.nullcontext
    counted = (mask.long().cumsum(-1) - 1).clamp(min=0)
    for heat in heats:
        yield f"temperature {heat:g}", nothing, {"heat": heat}
    yield "positions that count from the mask", nothing, {"position_ids": counted}
    yield "no attention mask", nothing, {"attention_mask": mask.new_ones(mask.shape)}
    yield "a head in bfloat16", lambda: _half_head(model), {}
    if hasattr(model, "disable_adapter"):
        yield "the adapter off", model.disable_adapter, {}
    config = getattr(model, "config", None)
    if getattr(config, "final_logit_softcapping", None):
        yield "no soft cap", lambda: _setting([config], "final_logit_softcapping", None), {}
    step = trainer.state.global_step
    for at, weights in kept[:-1]:
        back = step - at
        said = ["the weights of the first step"] if at == kept[0][0] else []
        said += [f"the weights of {back} step{'s' if back > 1 else ''} before"] if back < 3 else []
        for name in said:
            yield name, lambda weights=weights: _with(trainer.model, weights), {}


def families(model):
    """(text, values, context, whether all numbers between are values): settings of which the trainer and the generator may have
    another value each. text and context are functions of the value."""
    counts = {m: m.top_k for m in model.modules() if type(getattr(m, "top_k", None)) is int}  # of routers
    for most in sorted(set(counts.values())):
        routers = [m for m in counts if counts[m] == most]
        yield ("{} of the experts for each token".format, [k for k in range(1, min(8, 2 * most) + 1) if k != most],
               lambda k, routers=routers: _setting(routers, "top_k", k), False)
    scaled = [m for m in model.modules() if type(getattr(m, "norm_topk_prob", None)) is bool]
    if scaled:
        yield ("norm_topk_prob {}".format, [not scaled[0].norm_topk_prob], lambda on: _setting(scaled, "norm_topk_prob", on), False)
    rotary = [m for m in model.modules() if len(getattr(m, "inv_freq", ())) > 1]
    if rotary:
        half = rotary[0].inv_freq  # each but the first is the one before times base^(-1 / their number)
        base, powers = (half[0] / half[1]).item() ** len(half), -half.new_tensor(range(len(half))) / len(half)
        bases = {base * k for k in (0.5, 2, 0.2, 5, 0.1, 10)} | {b for b in (1e4, 5e5, 1e6, 5e6, 1e7) if abs(b / base - 1) > 1e-3}
        yield (lambda b: f"a rotary base of {float(f'{b:.3g}'):.0f}", bases, lambda b: _setting(rotary, "inv_freq", half[0] * b ** powers), True)
        yield ("rotary positions x {:.3g}".format, (0.125, 0.25, 0.5, 2, 4, 8), lambda k: _setting(rotary, "inv_freq", half * k), True)


def best_of(family, scored, left, most):
    """(text, score) of the value that leaves least; between the given ones, too, if that is at most `most`. scored(text, context):
    None if it is not possible. left: how far a score is from the generator."""
    text, values, around, smooth = family
    tried = {}  # by value
    for by in (1, 1.5, 1.2, 1.1, 1.05, 1.02):
        for value in values if by == 1 else (best * by, best / by):
            made = scored(text(value), lambda: around(value))
            if made is not None:
                tried[value] = left(made), made
        if not tried:
            return None
        best = min(tried, key=lambda one: tried[one][0])
        if not smooth or tried[best][0] > most:
            break
    return text(best), tried[best][1]


@contextlib.contextmanager
def evaluating(model):
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


@contextlib.contextmanager
def moved(model, unit):
    """Each module that has none in it gives numbers that are moved by up to half of this, relative to them, in any direction."""
    import torch
    generators = {}

    def move(module, inputs, output):
        if not isinstance(output, torch.Tensor) or not output.is_floating_point():
            return None
        draw = generators.get(output.device)
        if draw is None:
            draw = generators[output.device] = torch.Generator(output.device).manual_seed(1)
        by = torch.rand(output.shape, generator=draw, device=output.device).sub_(0.5).mul_(unit)
        return output.float().mul(by.add_(1)).to(output.dtype)

    hooks = [m.register_forward_hook(move) for m in model.modules() if not any(m.children())]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextlib.contextmanager
def _setting(objects, key, value):
    held = [getattr(one, key) for one in objects]
    for one in objects:
        setattr(one, key, value)
    try:
        yield
    finally:
        for one, before in zip(objects, held):
            setattr(one, key, before)


@contextlib.contextmanager
def _half_head(model):
    import torch
    head = model.get_output_embeddings()
    made = head.forward
    head.forward = lambda x: torch.nn.functional.linear(x.bfloat16(), head.weight.bfloat16()).to(x.dtype)
    try:
        yield
    finally:
        head.forward = made


@contextlib.contextmanager
def _with(model, weights):
    held = {n: p for n, p in model.named_parameters() if n in weights}
    now = {n: p.detach().clone() for n, p in held.items()}
    _put(held, weights)
    try:
        yield
    finally:
        _put(held, now)


def _put(held, weights):
    import torch
    for n, p in held.items():
        p.data.copy_(weights[n])
    torch.clear_autocast_cache()  # autocast keeps what it has cast

