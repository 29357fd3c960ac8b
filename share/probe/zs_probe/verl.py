# SPDX-License-Identifier: Apache-2.0
"""Attaches to verl: takes the log-probabilities of both sides where its trainer compares them, which it does with
actor_rollout_ref.rollout.calculate_log_probs=True."""
import functools
import os

from .rollouts import Rollouts
from .say import guarded


def watch_metrics(module):
    made, watch = module.calculate_debug_metrics, _Batches()

    @functools.wraps(made)
    def calculate_debug_metrics(data, *args, **kwargs):
        guarded(watch.add)(data)
        return made(data, *args, **kwargs)

    module.calculate_debug_metrics = calculate_debug_metrics


class _Batches:
    def __init__(self):
        self.rollouts, self.count, self.prompts = None, 0, {}

    def add(self, data):
        batch, known = data.batch, getattr(data, "meta_info", None) or {}
        self.count += 1
        step = int(known.get("global_steps", self.count))
        if self.rollouts is None:
            self.rollouts = Rollouts(os.path.join(os.environ["ZS_PROBE"], "rollout"), "verl")
        ids, attended, length = batch["input_ids"], batch["attention_mask"].bool(), batch["responses"].shape[1]
        counts = batch["response_mask"] if "response_mask" in batch.keys() else attended[:, -length:]
        sides = {"gen": "rollout_log_probs", "train": "old_log_probs", "ref": "ref_log_prob", "entropy": "entropys"}
        for i in range(ids.shape[0]):
            whole, answer = ids[i][attended[i]].tolist(), int(attended[i, -length:].sum())
            prompt = len(whole) - answer
            values = {side: batch[name][i, :answer].float().tolist() for side, name in sides.items() if name in batch.keys()}
            sample = self.prompts.setdefault(tuple(whole[:prompt]), len(self.prompts))
            self.rollouts.add(step, whole, prompt, sample=str(sample), n=i, padded=int((~attended[i, :-length]).sum()), mask=counts[i, :answer].tolist(),
                              temperature=known.get("temperature"), **values)
