# SPDX-License-Identifier: Apache-2.0
"""A Python that has imported PyTorch, for tests that start it often: an import takes a second of processor.

warm.py serve SOCKET FILE: imports torch, then forks for each client; ends when FILE is gone, or nobody came for an hour.
warm.py run SOCKET WORD...: is `python3 WORD...` (-m MODULE or a script, with arguments) in such a fork: with this process's folder,
environment and standard streams. Ends as that ends.
"""
import json
import os
import signal
import socket
import sys


def run(words):
    """What `python3 WORD...` does, in a process that has begun otherwise; the exit status."""
    import atexit
    import runpy
    import threading

    status = 0
    try:
        if words[0] == "-m":
            sys.path.insert(0, os.getcwd())
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
            sys.argv = words
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if status == 1 and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException:
        sys.last_type, sys.last_value, sys.last_traceback = sys.exc_info()  # as an interpreter does before it prints
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def serve(path, file):
    import torch  # noqa: F401 # what this is for

    server = socket.socket(socket.AF_UNIX)
    server.bind(path + ".new")
    server.listen(64)
    server.settimeout(1)
    os.rename(path + ".new", path)
    idle = 0
    while os.path.exists(file) and idle < 3600:
        idle += 1
        try:
            client = server.accept()[0]
        except socket.timeout:
            continue
        finally:
            while reaped():
                pass
        idle = 0
        if os.fork():
            client.close()
            continue
        # This one waits for the training, which is its child, and says how it ended.
        server.close()
        client.settimeout(None)
        message, streams, _, _ = socket.recv_fds(client, 1 << 20, 3)
        while b"\n" not in message:
            message += client.recv(1 << 20)
        begun = json.loads(message)
        child = os.fork()
        if child == 0:
            client.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            os.chdir(begun["folder"])
            os.environ.clear()
            os.environ.update(begun["environment"])
            sys.path[:0] = [place for place in os.environ.get("PYTHONPATH", "").split(":") if place]
            os._exit(run(begun["words"]))
        client.sendall(b"%d\n" % child)
        client.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        os._exit(0)


def reaped():
    """Whether a child had ended."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0] > 0
    except ChildProcessError:
        return False


def ask(path, words):
    server = socket.socket(socket.AF_UNIX)
    server.connect(path)
    begun = json.dumps({"folder": os.getcwd(), "environment": dict(os.environ), "words": words}).encode() + b"\n"
    socket.send_fds(server, [begun[:1]], [0, 1, 2])
    server.sendall(begun[1:])
    answers = server.makefile()
    child = int(answers.readline())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(child, number))
    status = int(answers.readline())
    if status < 0:  # ended by a signal, as this is then
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], sys.argv[3])
    else:
        ask(sys.argv[2], sys.argv[3:])
