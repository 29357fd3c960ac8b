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
        yield "no soft cap", lambda: _without(config, "final_logit_softcapping"), {}
    step = trainer.state.global_step
    for at, weights in kept[:-1]:
        back = step - at
        said = ["the weights of the first step"] if at == kept[0][0] else []
        said += [f"the weights of {back} step{'s' if back > 1 else ''} before"] if back < 3 else []
        for name in said:
            yield name, lambda weights=weights: _with(trainer.model, weights), {}


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
def _without(config, key):
    held = getattr(config, key)
    setattr(config, key, None)
    try:
        yield
    finally:
        setattr(config, key, held)


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

