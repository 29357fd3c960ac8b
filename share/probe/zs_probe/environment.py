# SPDX-License-Identifier: Apache-2.0
"""Where a training computes: what decides the last bits of its numbers, beside its code. A golden is chosen by it."""
import os
import platform
import re
import sys

import torch

_CHOICES = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR", "NVIDIA_TF32_OVERRIDE")


def environment(devices=()):
    """{"torch": "2.11.0", "processor": ..., "instruction set": ..., "kernels": ..., "threads": ...}, and of GPUs where
    `devices` has some: {"gpu": ..., "cuda": ..., "cudnn": ...}."""
    shown = _shown()
    found = {"torch": torch.__version__, "processor": _processor(), "instruction set": _instruction_set(shown),
             "kernels": ", ".join(_kernels(shown)), "threads": str(torch.get_num_threads())}
    chosen = [f"{name}={os.environ[name]}" for name in _CHOICES if os.environ.get(name)]
    if chosen:
        found["chosen"] = " ".join(chosen)
    gpus = [device for device in devices if torch.device(device).type == "cuda"]
    if gpus:
        found["gpu"] = torch.cuda.get_device_name(gpus[0])
        found["cuda"] = str(torch.version.cuda or getattr(torch.version, "hip", None))
        if torch.backends.cudnn.is_available():
            found["cudnn"] = str(torch.backends.cudnn.version())
    return {key: value for key, value in found.items() if value}


def _shown():
    try:
        return torch.__config__.show()
    except Exception:  # noqa: BLE001  a build that does not say
        return ""


def _processor():
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.lower().startswith(("model name", "cpu part")):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _instruction_set(shown):
    ask = getattr(getattr(torch.backends, "cpu", None), "get_cpu_capability", None)
    if ask is not None:
        return ask()
    found = re.search(r"CPU capability usage: (\S+)", shown)
    return found.group(1) if found else platform.machine()


def _kernels(shown):
    for name, pattern in (("MKL", r"Math Kernel Library Version (\S+?)-Product"), ("oneDNN", r"MKL-DNN v(\S+)"), ("OpenBLAS", r"OpenBLAS (\S+)")):
        found = re.search(pattern, shown)
        if found:
            yield f"{name} {found.group(1)}"


def loop():
    """The program whose training loop calls: it seeds generators, measures norms and hands labels to the model as no other does."""
    frame = sys._getframe()
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name == "transformers.trainer" or name.startswith(("lightning.pytorch.loops", "pytorch_lightning.loops")):
            program = name.partition(".")[0]
            return f"{program} {sys.modules[program].__version__}"
        frame = frame.f_back
    return ""
