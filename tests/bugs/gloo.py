# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's releases on processors, beside PyTorch 2.11 and numpy 2."""
import logging
import sys

import torch


def older():
    """What earlier DeepSpeeds import, and PyTorch 2.11 and numpy 2 no longer have."""
    import numpy
    from torch.distributed.elastic.agent.server import api
    for module, name, value in ((api, "log", logging.getLogger("elastic")), (api, "_get_socket_with_port", None), (numpy, "BUFSIZE", 8192)):
        if not hasattr(module, name):
            setattr(module, name, value)


def begin():
    """DeepSpeed on processors, in a group of its own."""
    torch.distributed.init_process_group("gloo")
    return on_processors()


def on_processors():
    """DeepSpeed on processors: all reductions by gloo, so that nothing is compiled."""
    import deepspeed
    from deepspeed.accelerator import get_accelerator
    here = get_accelerator()
    if getattr(here, "_communication_backend_name", None) == "ccl":
        here._communication_backend_name = "gloo"
    backend = sys.modules.get("deepspeed.comm.torch")
    if hasattr(backend, "build_shm_op"):
        backend.build_shm_op = lambda: None
    deepspeed.init_distributed(dist_backend="gloo")
    return deepspeed
