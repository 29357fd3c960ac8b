# SPDX-License-Identifier: Apache-2.0
"""gangs.py < lines `RANKS [KEY=VALUE ...] SCRIPT`: each line is a gang of so many forked ranks over gloo. What they import is
imported once: the modules of $PRELOAD. KEYs are variables of the environment; ZS_PROBE is the recording, DONE a file that stands
for the end of a gang without errors, SEEN the ranks' output."""
import atexit
import importlib
import os
import runpy
import shlex
import signal
import socket
import sys
import time
import traceback
import warnings

warnings.filterwarnings("ignore")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch  # noqa: E402
import torch.distributed.tensor  # noqa: E402

torch.set_num_threads(1)
for module in os.environ.get("PRELOAD", "").split():
    importlib.import_module(module)


def port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def member(script):
    """A rank, to its end."""
    status = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    atexit._run_exitfuncs()  # a recording has an end
    os._exit(status)


def gang(ranks, settings, script):
    at, left, bad, end = port(), [], False, time.time() + float(os.environ.get("LIMIT", 300))
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            os.environ.update(settings, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
                              MASTER_ADDR="127.0.0.1", MASTER_PORT=at)
            log = os.open(settings["SEEN"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(log, 1), os.dup2(log, 2)
            sys.argv = [script]
            member(script)
        left.append(child)
    while left:
        done, status = os.waitpid(-1, os.WNOHANG)
        if done:
            left.remove(done)
            if status and not bad:
                bad, end = True, time.time() + 5  # the others wait for it
        elif time.time() > end:
            bad = True
            for one in left:
                os.kill(one, signal.SIGKILL)
            end = float("inf")
        else:
            time.sleep(0.05)
    if not bad:
        open(settings["DONE"], "w").close()


for line in sys.stdin:
    words = shlex.split(line, comments=True)
    if words:
        settings = dict(word.split("=", 1) for word in words[1:-1])
        if not os.path.exists(settings["DONE"]):
            gang(int(words[0]), settings, words[-1])
