# SPDX-License-Identifier: Apache-2.0
"""Schedules that move the rates of an optimizer's groups, of torch and of DeepSpeed: which there are, how often each has moved, and what
its formula says."""
import bisect
import gc
import math
import sys
import weakref

_found, _by_rank, _begun = [], weakref.WeakSet(), weakref.WeakKeyDictionary()
_searches = [4]  # that are left: each takes as long as a step of a small model


def begin(optimizer):
    """Keeps the rates that an optimizer was made with."""
    if all("lr" in group for group in optimizer.param_groups):  # one that holds others has none
        _begun[optimizer] = [float(group["lr"]) for group in optimizer.param_groups]


def find():
    """Those that live in this process; called where a recording begins."""
    known = {id(ref()) for ref in _found}
    for one in gc.get_objects():
        if _is_schedule(one) and id(one) not in known:
            _found.append(weakref.ref(one))
        if type(one).__name__ == "AcceleratedScheduler" and one.step_with_optimizer and not one.split_batches:  # it moves once for each rank
            state = sys.modules["accelerate.state"].AcceleratorState
            if state().num_processes > 1:
                _by_rank.add(one.scheduler)


def _is_schedule(one):
    return any(kind.__name__ in ("LRScheduler", "_LRScheduler") for kind in type(one).__mro__)


def _held(schedule):
    """The schedules that one moves, as SequentialLR and ChainedScheduler do: they are its own matter."""
    values = [one for value in vars(schedule).values() for one in (value if isinstance(value, (list, tuple)) else (value,))]
    return [one for one in values if _is_schedule(one)]


def _formula(schedule):
    """The rates at its count; None: its formula needs what is past, or is not known, as that of a class that a user derives."""
    try:
        if type(schedule).__name__ == "SequentialLR":
            return _formula(schedule._schedulers[bisect.bisect_right(schedule._milestones, schedule.last_epoch)])
        if not type(schedule).__module__.startswith("torch."):
            return None
        if hasattr(schedule, "_get_closed_form_lr"):
            return [float(rate) for rate in schedule._get_closed_form_lr()]
        if type(schedule).__name__ == "LambdaLR":
            return [float(base * of(schedule.last_epoch)) for base, of in zip(schedule.base_lrs, schedule.lr_lambdas)]
    except Exception:  # noqa: BLE001  a formula of the user's own
        pass
    return None


def _left(schedule):
    """The rates that a schedule of torch has set last; None: it does not say."""
    known = getattr(schedule, "_last_lr", None) if type(schedule).__module__.startswith("torch.") else None
    return known and [float(rate) for rate in known]


def told(groups):
    """Of each optimizer that has one of these groups, and schedules: their class, count, rates of the groups, formula."""
    rows = _rows(groups)
    if _searches[0] and any(row["formula"] and not all(map(_near, row["rates"], row["formula"])) for row in rows):
        _searches[0] -= 1  # one may have been made since the recording began
        find()
        rows = _rows(groups)
    return rows


def _near(rate, said):
    return math.isclose(rate, said, rel_tol=1e-6, abs_tol=1e-15)


def _rows(groups):
    mine, of_groups = {id(group) for group in groups}, {}
    living = [one for one in (ref() for ref in _found) if one is not None]
    held = {id(one) for schedule in living for one in _held(schedule)}
    for schedule in living:
        moved = getattr(getattr(schedule, "optimizer", None), "param_groups", ())
        if id(schedule) not in held and any(id(group) in mine for group in moved):
            of_groups.setdefault(tuple(map(id, moved)), (moved, []))[1].append(schedule)
    rows = []
    for moved, its in of_groups.values():
        counts = [next((s.last_epoch for s in (one, *_held(one)) if isinstance(getattr(s, "last_epoch", None), int)), None) for one in its]
        if None in counts:
            continue
        rates, formula = [float(group["lr"]) for group in moved], _formula(its[0]) if len(its) == 1 else None
        if formula is None:  # whichever moved last has set the rates
            left = [_left(one) for one in its]
            formula = None if None in left else rates if rates in left else left[-1]
        rows.append({"name": " with ".join(type(one).__name__ + " of Accelerate" * (one in _by_rank) for one in its), "count": sum(counts),
                     "rates": rates, "formula": formula})
    return rows


def of_engine(engine, optimizer):
    """The row of DeepSpeed's own schedule: its formula is that of its settings, and of the rates that the optimizer was made with."""
    schedule, settings = engine.lr_scheduler, engine.scheduler_params() or {}
    moved = getattr(schedule, "last_batch_iteration", None)
    if not isinstance(moved, int) or not type(schedule).__module__.startswith("deepspeed."):
        return []
    name, groups, begun = type(schedule).__name__, optimizer.param_groups, _begun.get(optimizer)
    ratio = begun and len(begun) == len(groups) and {"WarmupLR": _warmup, "WarmupDecayLR": _warmup, "WarmupCosineLR": _warmup, "OneCycle": _cycle}.get(name)
    low, high = {"OneCycle": ("cycle_min_lr", "cycle_max_lr")}.get(name, ("warmup_min_lr", "warmup_max_lr"))
    formula = [_between(settings.get(low, 0), settings.get(high, rate), i, ratio(name, moved, settings))
               for i, rate in enumerate(begun)] if ratio and engine.scheduler_name() == name else None
    return [{"name": name, "count": moved, "rates": [float(group["lr"]) for group in groups],
             "formula": formula if formula and all(rate is not None for rate in formula) else None}]


def _between(low, high, group, ratio):
    low, high = (value[group] if isinstance(value, (list, tuple)) else value for value in (low, high))
    return None if ratio is None else float(low + (high - low) * ratio)


def _warmup(name, moved, settings):
    """What a warm-up gives of the highest rate: by the logarithm of the steps or in a line, and then what follows it."""
    steps = max(2, settings.get("warmup_num_steps", 1000))
    if moved < 0:
        return 0
    if moved < steps:
        ratio = moved / steps if settings.get("warmup_type", "log") == "linear" else math.log(moved + 1) / math.log(steps)
        least = settings.get("warmup_min_ratio", 0) if name == "WarmupCosineLR" else 0
        return least + (1 - least) * ratio
    if name == "WarmupLR":
        return 1
    rest = max(1, settings["total_num_steps"] - steps)
    if name == "WarmupDecayLR":
        return max(0, (settings["total_num_steps"] - moved) / rest)
    least = settings.get("cos_min_ratio", 0.0001)
    return least + (1 - least) * (1 + math.cos(math.pi * min(1, (moved - steps + 1) / rest))) / 2


def _cycle(_, moved, settings):
    """How far a cycle is between its lowest and its highest rate; stairs hold the rate. None: behind the cycle."""
    first = settings.get("cycle_first_step_size", 2000)
    second = settings.get("cycle_second_step_size") or first
    at, stairs = moved + 1, settings.get("cycle_first_stair_count", 0)
    if at > first:
        at, first, stairs = first + second - at, second, settings.get("cycle_second_stair_count") or stairs
    if at < 0:
        return None
    return at * stairs // first / stairs if stairs else at / first
