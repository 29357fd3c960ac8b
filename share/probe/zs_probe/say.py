# SPDX-License-Identifier: Apache-2.0
"""What zs_probe tells its user: each sentence once, on stderr. stdout belongs to the training."""
import functools
import os
import sys
import traceback

_said = set()
not_seen = []  # sentences that the record has too: what of the training is not recorded


def say(text):
    if text in _said:
        return
    _said.add(text)
    rank = os.environ.get("RANK")
    print(f"zs_probe: {f'rank {rank}: ' if rank else ''}{text}", file=sys.stderr, flush=True)


def unseen(text):
    """Says it, and the record says it too."""
    say(text)
    if text not in not_seen and len(not_seen) < 256:
        not_seen.append(text)


def guarded(function):
    """A hook that never raises into the training: what fails in it is told, once, and stands in the record."""

    @functools.wraps(function)
    def run(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  whatever it is, the training goes on
            where = traceback.extract_tb(error.__traceback__)[-1]
            unseen(f"not recorded: {type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})")
            if os.environ.get("ZS_PROBE_DEBUG"):
                traceback.print_exc()
            return None

    return run
