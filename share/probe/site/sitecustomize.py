# SPDX-License-Identifier: Apache-2.0
"""For Python's start: this folder stands on PYTHONPATH under zs-record. Lets the process tell where it is when zs-record asks
(SIGURG, which a process that knows nothing of it ignores), and attaches the probe where $ZS_PROBE names a folder. Then the
sitecustomize that would have been found without this one."""
import os
import sys


def _tell_where(folder):
    import faulthandler
    import signal
    import socket
    os.makedirs(folder, exist_ok=True)
    names = ("RANK", "WORLD_SIZE")
    # Kept open for as long as the process lives.
    file = open(os.path.join(folder, f"{socket.gethostname()}.{os.getpid()}.txt"), "w", buffering=1)
    file.write(" ".join(os.environ.get(name, "-") for name in names) + " " + " ".join(sys.orig_argv[:3] if hasattr(sys, "orig_argv") else []) + "\n")
    faulthandler.register(signal.SIGURG, file=file, all_threads=True, chain=False)
    return file


def _old_names():
    """PyTorch before 2.10 has other names for its flight recorder's variables, and later ones complain of those."""
    from importlib.metadata import PackageNotFoundError, version
    try:
        release = [int(part) for part in version("torch").split("+")[0].split(".")[:2]]
    except (PackageNotFoundError, ValueError):
        return
    if release < [2, 10]:
        for new, old in (("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"),
                         ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")):
            if new in os.environ:
                os.environ.setdefault(old, os.environ[new])


def _next():
    import importlib.machinery
    import importlib.util
    here = os.path.dirname(os.path.abspath(__file__))
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p or ".") != here])
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


try:
    if os.environ.get("ZS_STACKS"):
        _zs_stacks = _tell_where(os.environ["ZS_STACKS"])
        _old_names()
    if os.environ.get("ZS_PROBE", "off") not in ("", "off"):
        sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        from zs_probe import boot
        boot.activate()
except Exception as error:  # a training is never ended by what watches it
    print(f"zs: {type(error).__name__}: {error}", file=sys.stderr)
_next()
