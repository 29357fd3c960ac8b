#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GPU that several benches share (bench/gpu -j). card.py COMMAND...: runs it while the others stand still.

ZS_BENCH_CARD is a folder. It holds a file for each bench, named by its session, and the file `lock` of the one that has the GPU."""
import atexit
import fcntl
import os
import signal
import subprocess
import sys
import time


class Card:
    """A bench compiles beside the others, trains while no other does, and is timed while they stand still. Without a folder nothing is
    shared."""

    def __init__(self, folder):
        self.folder, self.lock = folder, None

    def take(self):
        if self.folder and not self.lock:
            self.lock = open(f"{self.folder}/lock", "w")
            fcntl.flock(self.lock, fcntl.LOCK_EX)

    def stop_others(self):
        if self.folder:
            atexit.register(self._signal, signal.SIGCONT)
            self._signal(signal.SIGSTOP)

    def let_others(self):
        """Gives the GPU away for a turn of others, if they have room beside what this one keeps."""
        import torch

        if not self.lock:
            return
        self._signal(signal.SIGCONT)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
            if torch.cuda.memory_allocated() > torch.cuda.get_device_properties(0).total_memory / 4:
                return
        self.lock.close()
        self.lock = None
        time.sleep(1)
        self.take()

    def wait_in_graphs(self):
        """Lets what torch.compile makes take this GPU where it first runs, when backward is compiled too."""
        import torch._functorch.config
        from torch._inductor import compile_fx

        torch._functorch.config.force_non_lazy_backward_lowering = True
        whole = compile_fx.compile_fx

        def compile_and_wait(*given, **named):
            made = whole(*given, **named)

            def run(*operands):
                self.take()
                return made(*operands)

            return run

        compile_fx.compile_fx = compile_and_wait

    def _signal(self, what):
        for session in filter(str.isdigit, os.listdir(self.folder)):
            if int(session) != os.getsid(0):
                subprocess.run(["pkill", f"-{int(what)}", "-s", session])


def main():
    card = Card(os.environ["ZS_BENCH_CARD"])
    card.take()
    card.stop_others()
    program = subprocess.Popen(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: program.terminate())
    sys.exit(program.wait())


if __name__ == "__main__":
    main()
