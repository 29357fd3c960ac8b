# SPDX-License-Identifier: Apache-2.0
"""Log-probabilities of a generator and a trainer: FOLDER/rollout-R.jsonl of each rank, an object a line.

{"zs_rollout": 1, "rank", "system", "generator_dtype", "trainer_dtype", "experts"}   first, and again where a training resumes
{"zs_rollout": 1, "end": true, "how"}   last; how the training ended: whole, "exception TYPE: TEXT", "exit STATUS"
{"step", "sample", "n", "ids", "prompt", "mask", "gen", "train", "ref", "raw", "entropy", "again", "turn", "replays",
 "temperature", "top_k", "top_p", "min_p", "padded", "cached", "version"}

ids       the token ids of prompt and completion, without padding. prompt: how many of them are the prompt's.
gen ...   a number for each token of the completion, as base64 of little-endian float32: the log-probability that the
          generator drew from, the trainer's, the reference model's; raw: the generator's before temperature, top-k and top-p;
          the entropy of the trainer's distribution; again: the trainer's once more, with all that it computes moved by rounding,
          which measures the bound. A list of numbers is read, too.
mask      a number for each token of the completion: 0 does not count. replays: {"a variant": the trainer's score under it}.
sample    a name of the prompt and its number among the samples; n: the number among samples of one prompt.
What is not there was not recorded. A file may hold one side alone: zs-verify TRAINER GENERATOR joins two.
"""
import atexit
import base64
import json
import os
import struct

from .boot import how_it_ends

_NUMBERS = ("gen", "train", "ref", "raw", "entropy", "again", "mask", "turn")


def _packed(values):
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


class Rollouts:
    """Writes FOLDER/rollout-RANK.jsonl."""

    def __init__(self, folder, system="zs", generator_dtype="", trainer_dtype="", experts=False, rank=None):
        rank = int(os.environ.get("RANK", "0")) if rank is None else rank
        os.makedirs(folder, exist_ok=True)
        self._file = open(os.path.join(folder, f"rollout-{rank}.jsonl"), "a")
        self._line({"zs_rollout": 1, "rank": rank, "system": system, "generator_dtype": generator_dtype,
                    "trainer_dtype": trainer_dtype, "experts": experts})
        atexit.register(self.close)

    def add(self, step, ids, prompt, replays=None, **more):
        """A prompt and its completion: `ids` of both, `prompt` how many are the prompt's; gen=, train=, ref=, raw=, entropy=,
        again=, mask=, turn= with a number for each token of the completion; sample=, n=, temperature=, top_k=, top_p=, min_p=,
        padded=, cached=, version= as the head of this file says. A length that does not fit raises ValueError."""
        ids = ids.tolist() if hasattr(ids, "tolist") else list(ids)
        row = {"step": int(step), "ids": ids, "prompt": int(prompt)}
        for key, value in more.items():
            if value is None:
                continue
            if key in _NUMBERS:
                if len(value) != len(ids) - prompt:
                    raise ValueError(f"zs_probe: {key} has {len(value)} values for {len(ids) - prompt} tokens of the completion")
                value = _packed(value)
            row[key] = value
        if replays:
            row["replays"] = {name: _packed(values) for name, values in replays.items()}
        self._line(row)

    def _line(self, row):
        self._file.write(json.dumps(row, separators=(",", ":")) + "\n")
        self._file.flush()

    def close(self):
        """Ends the file; at the end of the process it happens by itself."""
        if not self._file.closed:
            self._line({"zs_rollout": 1, "end": True, "how": how_it_ends()})
            self._file.close()
