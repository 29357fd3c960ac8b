# SPDX-License-Identifier: Apache-2.0
"""Records what a PyTorch training computes, so that zs-verify can say where two trainings part, and by what relation.

    ZS_PROBE=DIR python -m zs_probe train.py ARGUMENTS          the training as it is
    ZS_PROBE=DIR torchrun ... -m zs_probe train.py ARGUMENTS

or, in the training's own loop, before its first step

    probe = zs_probe.attach(model, optimizer, "probe-a")        or of a DeepSpeed engine, a Trainer: attach(x)

Needs torch alone. Each rank writes FOLDER/rank-R.jsonl (writer.py says what); zs-verify FOLDER_A FOLDER_B compares two.

every=N       writes each N-th step, and the first. The default, None, writes the first 16, measures them, and takes the power
              of two that keeps the probe at about 1 % of the time. Two probes are compared at the steps that both have.
values=True   keeps the values, too, of each step that is written (or of those steps that are in `values`).
outputs=("blocks.*", "head")  also records what the modules with such names make of each sample.

In reinforcement learning $ZS_PROBE/rollout has the log-probabilities of both sides: of TRL's trainers by itself, of others by
zs_probe.Rollouts(folder).add(...) (rollouts.py). zs_probe.weights(model, version) records digests of the weights on each side of
a sync (synced.py).

$ZS_PROBE names the folder, or is `off`: nothing is recorded. $ZS_PROBE_EVERY, $ZS_PROBE_VALUES (all, or steps joined by
commas) and $ZS_PROBE_OUTPUTS (patterns joined by commas) stand for the arguments that the call leaves out. $ZS_PROBE_PERTURB=SEED
moves each parameter by one unit in the last place before the first step: what this changes is what rounding may. $ZS_PROBE_STEPS_DONE says how many steps a training that resumes has
made, where its framework and its optimizer do not count them.
"""
__all__ = ["attach", "Off", "Recorder", "Rollouts", "TrainerCallback", "weights"]


def attach(x, optimizer=None, folder="probe", every=None, values=None, outputs=()):
    """Records the steps of a training; see attaching.py."""
    from . import attaching
    return attaching.attach(x, optimizer, folder, every, values, outputs)


def __getattr__(name):  # torch is imported when something needs it
    if name in ("TrainerCallback", "lightning_callback"):
        from . import callbacks
        return getattr(callbacks, name)
    if name in ("Recorder", "Probe"):
        from .recorder import Recorder
        return Recorder
    if name == "Off":
        from .attaching import Off
        return Off
    if name == "Rollouts":
        from .rollouts import Rollouts
        return Rollouts
    if name == "weights":
        from .synced import weights
        return weights
    if name == "digest":
        from .sketch import digest
        return digest
    raise AttributeError(f"module 'zs_probe' has no attribute '{name}'")
