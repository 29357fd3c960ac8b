# SPDX-License-Identifier: Apache-2.0
"""Attaches to verl and OpenRLHF: takes the log-probabilities of both sides where the trainer has both. verl compares them with
actor_rollout_ref.rollout.calculate_log_probs=True; OpenRLHF's experience has vLLM's with --algo.advantage.is_correction_level token or seq."""
import functools
import os

from .rollouts import Rollouts
from .say import guarded, say


def watch_verl(module):
    made, batches = module.calculate_debug_metrics, _Batches("verl")

    @functools.wraps(made)
    def calculate_debug_metrics(data, *args, **kwargs):
        guarded(batches.of_verl)(data)
        return made(data, *args, **kwargs)

    module.calculate_debug_metrics = calculate_debug_metrics


def watch_openrlhf(module):
    kind, batches = module.RemoteExperienceMaker, _Batches("OpenRLHF")
    made = kind.make_experience

    @functools.wraps(made)
    def make_experience(self, *args, **kwargs):
        result = made(self, *args, **kwargs)
        guarded(batches.of_openrlhf)(result, self.strategy.args)
        return result

    kind.make_experience = make_experience


class _Batches:
    def __init__(self, system):
        self.rollouts, self.count, self.prompts, self.system = None, 0, {}, system

    def _add(self, step, n, ids, prompt, **values):
        if self.rollouts is None:
            self.rollouts = Rollouts(os.path.join(os.environ["ZS_PROBE"], "rollout"), self.system)
        sample = self.prompts.setdefault(tuple(ids[:prompt]), len(self.prompts))
        self.rollouts.add(step, ids, prompt, sample=str(sample), n=n, **values)

    def of_verl(self, data):
        batch, known = data.batch, getattr(data, "meta_info", None) or {}
        self.count += 1
        step = int(known.get("global_steps", self.count))
        ids, attended, length = batch["input_ids"], batch["attention_mask"].bool(), batch["responses"].shape[1]
        counts = batch["response_mask"] if "response_mask" in batch.keys() else attended[:, -length:]
        sides = {"gen": "rollout_log_probs", "train": "old_log_probs", "ref": "ref_log_prob", "entropy": "entropys"}
        for i in range(ids.shape[0]):
            whole, answer = ids[i][attended[i]].tolist(), int(attended[i, -length:].sum())
            values = {side: batch[name][i, :answer].float().tolist() for side, name in sides.items() if name in batch.keys()}
            self._add(step, i, whole, len(whole) - answer, padded=int((~attended[i, :-length]).sum()), mask=counts[i, :answer].tolist(),
                      temperature=known.get("temperature"), **values)

    def of_openrlhf(self, experiences, args):
        """Their log-probabilities and masks begin with the second token of a sequence."""
        self.count, n = self.count + 1, 0
        sides = {"gen": "rollout_log_probs", "train": "action_log_probs", "ref": "base_action_log_probs"}
        temperature = getattr(getattr(args, "rollout", args), "temperature", None)
        for one in experiences:
            if one.rollout_log_probs is None:
                say("OpenRLHF keeps no log-probabilities of vLLM: set --algo.advantage.is_correction_level token")
                return
            for i, attended in enumerate(one.attention_mask.bool()):
                whole, begin = one.sequences[i][attended].tolist(), int(attended.int().argmax())
                acts = one.action_mask[i].bool()
                if not acts.any():
                    continue
                first, end = int(acts.int().argmax()), begin + len(whole) - 1
                values = {side: getattr(one, name)[i, first:end].float().tolist() for side, name in sides.items() if getattr(one, name, None) is not None}
                self._add(self.count, n, whole, first + 1 - begin, padded=begin, mask=acts[first:end].int().tolist(), temperature=temperature, **values)
                n += 1
