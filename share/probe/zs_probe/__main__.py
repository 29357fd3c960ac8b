# SPDX-License-Identifier: Apache-2.0
"""ZS_PROBE=DIR python -m zs_probe [-m MODULE | SCRIPT] [ARGUMENT...]: runs a training as it is, and records it."""
import os
import runpy
import sys

from . import boot

USAGE = "usage: ZS_PROBE=DIR python -m zs_probe [-m MODULE | SCRIPT] [ARGUMENT...]"


def main():
    words, launcher = sys.argv[1:], []
    while words and words[0].startswith(("--local_rank", "--local-rank")):  # which DeepSpeed's launcher puts before the script
        launcher.append(words.pop(0))
    if not words or words[0] in ("-h", "--help") or words == ["-m"]:
        print(USAGE, file=sys.stderr)
        sys.exit(0 if words and words[0] in ("-h", "--help") else 2)
    if not os.environ.get("ZS_PROBE"):
        os.environ["ZS_PROBE"] = "probe"
        print("zs_probe: ZS_PROBE is not set: the training is recorded in the folder probe", file=sys.stderr)
    boot.activate()
    try:
        run(words, launcher)
        tell_if_empty(os.environ["ZS_PROBE"])
    except SystemExit as error:
        boot.ends(error)
        raise


def tell_if_empty(folder):
    if folder.partition(":")[0] == "golden":
        folder = folder.partition(":")[2] or "golden"
    if folder != "off" and not (os.path.isdir(folder) and any(name.startswith(("rank-", "rollout")) for name in os.listdir(folder))):
        print("zs_probe: nothing was recorded: no optimizer of torch made a step", file=sys.stderr)


def run(words, launcher):
    if words[0] == "-m":
        sys.argv = [words[1], *launcher, *words[2:]]
        sys.path[0] = os.getcwd()
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = [words[0], *launcher, *words[1:]]
    sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
