# SPDX-License-Identifier: Apache-2.0
"""Schedules of torch that move the rates of an optimizer's groups: which there are, how often each has moved, and what its formula
says."""
import gc
import weakref

_found = []


def find():
    """Those that live in this process; called where a recording begins."""
    known = {id(ref()) for ref in _found}
    for one in gc.get_objects():
        kinds = {kind.__name__ for kind in type(one).__mro__}
        if kinds & {"LRScheduler", "_LRScheduler"} and id(one) not in known:
            _found.append(weakref.ref(one))


def _formula(schedule):
    """The rates at its count; None: its formula needs what is past, or is not known."""
    try:
        if hasattr(schedule, "_get_closed_form_lr"):
            return [float(rate) for rate in schedule._get_closed_form_lr()]
        if hasattr(schedule, "lr_lambdas"):
            return [float(base * of(schedule.last_epoch)) for base, of in zip(schedule.base_lrs, schedule.lr_lambdas)]
    except Exception:  # noqa: BLE001  a formula of the user's own
        pass
    return None


def told(groups):
    """Of each schedule that moves one of these groups: its class, count, rates of the groups, formula."""
    mine, rows = {id(group) for group in groups}, []
    for ref in _found:
        schedule = ref()
        moved = getattr(getattr(schedule, "optimizer", None), "param_groups", ())
        if any(id(group) in mine for group in moved) and isinstance(getattr(schedule, "last_epoch", None), int):
            rows.append({"name": type(schedule).__name__, "count": schedule.last_epoch, "rates": [float(group["lr"]) for group in moved],
                         "formula": _formula(schedule)})
    return rows
