# SPDX-License-Identifier: Apache-2.0
"""What recording costs a training's steps, and which steps are recorded so that it stays small."""
import math
import statistics
import time

import torch

_FIRST = 16   # steps that are recorded whatever they cost
_WARM = 4     # of them, in which all is made that is made once
_MOST = 0.01  # of the time


class Cost:
    """Used as a context it counts this process's time. What a GPU takes is added: it may work beside this process, or not."""

    def __init__(self, asked):
        self._spent, self._depth, self._begun, self._last = 0.0, 0, 0.0, time.monotonic()
        self._events, self._steps, self._device = [], {}, {}
        self._step, self._over = 0, not asked

    def __enter__(self):
        if self._depth == 0:
            self._begun = time.monotonic()
        self._depth += 1

    def __exit__(self, *_):
        self._depth -= 1
        if self._depth == 0:
            self._spent += time.monotonic() - self._begun

    def read(self, plan, tensors, earlier=()):
        """What a Plan reads, whose time on a GPU is taken in the first steps."""
        device = None if self._over else next((device for _, device, _ in plan.kinds if device.type == "cuda"), None)
        if device is None:
            return plan.read(tensors, earlier)
        with torch.cuda.device(device):
            events = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            events[0].record()
            found = plan.read(tensors, earlier)
            events[1].record()
        self._events.append(events)
        return found

    def timed(self):
        """What is to be called when the GPU has done what this step asked of it."""
        events, self._events = self._events, []
        step = self._step

        def take():
            if not self._over:
                self._device[step] = sum(begin.elapsed_time(end) for begin, end in events) / 1000
        return take

    def stride(self, step):
        """At the end of a step, the number of steps since the probe began: after the first steps the power of two that keeps
        recording below one per cent of the time; before, None."""
        now, spent = time.monotonic(), self._spent
        self._steps[self._step] = (now - self._last, spent)
        self._last, self._spent = now, 0.0
        self._step += 1
        known = [s for s in self._steps if s >= _WARM and s in self._device]
        if step < _FIRST or len(known) < (_FIRST - _WARM) // 2:
            return None
        self._over = True
        share = statistics.median(self._share(*self._steps[s], self._device[s]) for s in known)
        return 1 if share <= _MOST else 1 << math.ceil(math.log2(share / _MOST))

    @staticmethod
    def _share(whole, here, there):
        """Of a step's seconds those of recording, over the others."""
        spent = here + there
        return spent / max(1e-9, whole - spent)
