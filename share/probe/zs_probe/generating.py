# SPDX-License-Identifier: Apache-2.0
"""Attaches to TRL's trainers that generate (GRPO, RLOO, Online DPO and what inherits them): takes the log-probabilities of
transformers' generate() as it draws, and the first score of each sample by the trainer."""
import atexit
import functools
import os

from .say import guarded, say
from .variants import UNITS, best_of, evaluating, families, moved, variants

TRAINERS = {
    "trl.trainer.grpo_trainer": "GRPOTrainer",
    "trl.trainer.rloo_trainer": "RLOOTrainer",
    "trl.trainer.online_dpo_trainer": "OnlineDPOTrainer",
    "trl.experimental.online_dpo.online_dpo_trainer": "OnlineDPOTrainer",
}
_SCORES = ("_get_per_token_logps_and_entropies", "_get_per_token_logps", "_forward")
_now = []  # the Watch of the training step under way
_REPLAYED = 8  # batches that differ and are scored again under variants
_SEARCHED = 3  # of these: settings are searched for
_KEPT = 1 << 28  # bytes of weights that are kept for that
_MEASURED = 1024  # tokens that are scored again to measure rounding


def watch_trainer(kind_name, module):
    kind = getattr(module, kind_name, None)
    if kind is None or "training_step" not in dir(kind):
        return
    step = kind.training_step

    @functools.wraps(step)
    def training_step(self, *args, **kwargs):
        watch = guarded(_watch_of)(self)
        if watch is not None:
            guarded(watch.keep)()
        _now.append(watch)
        try:
            return step(self, *args, **kwargs)
        finally:
            _now.pop()

    kind.training_step = training_step
    log = kind.log

    @functools.wraps(log)
    def logging(self, logs, *args, **kwargs):
        watch = getattr(self, "zs_watch", None)
        return log(self, {**logs, **(watch.said() if watch else {})}, *args, **kwargs)

    kind.log = logging
    if "_generate_and_score_completions" in kind.__dict__:
        kind._generate_and_score_completions = _batched(kind._generate_and_score_completions)
    for name in _SCORES:
        if name in kind.__dict__:
            setattr(kind, name, _scored(getattr(kind, name), name))


def _batched(made):
    """Its result has the log-probabilities of vLLM; what it scores meanwhile waits for them."""
    @functools.wraps(made)
    def batch(self, *args, **kwargs):
        watch = _now[-1] if _now else None
        if watch is None:
            return made(self, *args, **kwargs)
        watch.held = []
        try:
            result = made(self, *args, **kwargs)
            guarded(watch.batched)(result)
            for call in watch.held:
                guarded(watch.scored)(*call)
            return result
        finally:
            watch.held = None
    return batch


def _scored(made, name):
    @functools.wraps(made)
    def score(self, model, *args, **kwargs):
        watch = _now[-1] if _now else None
        if watch is None or watch.scoring:
            return made(self, model, *args, **kwargs)
        watch.scoring = True
        try:
            result = made(self, model, *args, **kwargs)
            call = (made, name, model, args, kwargs, result, watch.refers(model))
            if watch.held is None:
                guarded(watch.scored)(*call)
            else:
                watch.held.append(call)
            return result
        finally:
            watch.scoring = False
    return score


def watch_generation(module):
    kind = module.GenerationMixin
    generate, processors = kind.generate, kind._get_logits_processor

    @functools.wraps(processors)
    def _get_logits_processor(self, *args, **kwargs):
        made = processors(self, *args, **kwargs)
        watch = _now[-1] if _now else None
        if watch is not None and watch.drawing is not None:
            drawing = watch.drawing
            made.insert(0, drawing.first)
            made.append(drawing.last)
        return made

    # generate() has a decorator; its wrapper keeps it.
    @functools.wraps(generate)
    def generating(self, *args, **kwargs):
        watch = _now[-1] if _now else None
        if watch is None:
            return generate(self, *args, **kwargs)
        watch.drawing = _Drawing()
        try:
            result = generate(self, *args, **kwargs)
            guarded(watch.generated)(self, args, kwargs, result)
            return result
        finally:
            watch.drawing = None

    kind.generate, kind._get_logits_processor = generating, _get_logits_processor


class _Ends:
    """A logits processor that changes nothing: it takes the scores of the token before, when the next one is asked for."""

    def __init__(self):
        self.last, self.taken = None, []

    def __call__(self, input_ids, scores):
        self.close(input_ids)
        self.last = scores.float().log_softmax(-1)
        return scores

    def close(self, ids):
        if self.last is not None:
            self.taken.append(self.last.gather(-1, ids[:, -1:]))
            self.last = None


class _Drawing:
    def __init__(self):
        self.first, self.last = _Ends(), _Ends()

    def values(self, sequences):
        """(processed, raw) log-probabilities of the drawn tokens, [rows, tokens]."""
        import torch
        made = []
        for one in (self.last, self.first):
            one.close(sequences)
            made.append(torch.cat(one.taken, 1) if one.taken else None)
        return made


def _watch_of(trainer):
    if not hasattr(trainer, "zs_watch"):
        trainer.zs_watch = Watch(trainer)
    return trainer.zs_watch


def _type_of(model):
    from .writer import type_name
    types = {type_name(p.dtype) for p in model.parameters() if p.is_floating_point()}
    return "BF16" if "BF16" in types else "F16" if "F16" in types else "F32"


class Watch:
    """Of one trainer: what was generated and waits for its score."""

    def __init__(self, trainer):
        from .rollouts import Rollouts
        self.trainer, self.drawing, self.waiting, self.replayed, self.kept = trainer, None, {}, 0, []
        model = trainer.accelerator.unwrap_model(trainer.model)
        mixed = getattr(trainer.accelerator, "mixed_precision", "no")
        dtype = _type_of(model)
        computed = {"bf16": "BF16", "fp16": "F16"}.get(mixed, dtype)
        self.pad = getattr(trainer, "pad_token_id", None)
        if self.pad is None:
            tokenizer = getattr(trainer, "processing_class", None)
            self.pad = getattr(tokenizer, "pad_token_id", None)
        self.rollouts = Rollouts(os.path.join(os.environ["ZS_PROBE"], "rollout"), "TRL", dtype, computed,
                                 rank=trainer.accelerator.process_index)
        self.coarser, self.measured = next(t for t in ("BF16", "F16", "F32") if t in (dtype, computed)), 0
        self.rough = 0.0  # the most that rounding was seen to move
        self.prompts, self.apart, self.scoring, self.held = {}, [], False, None
        for one in (model, getattr(trainer, "ref_model", None)):
            if hasattr(one, "register_forward_hook"):
                one.register_forward_hook(guarded(self._forwarded), with_kwargs=True)
        from .engines import watch_client, watch_llm
        watch_llm(getattr(trainer, "llm", None), self)
        watch_client(getattr(trainer, "vllm_client", None), self)
        atexit.register(guarded(self.flush))

    # ---- the generator

    def generated(self, model, args, kwargs, result):
        import torch
        self.flush()
        sequences = result if isinstance(result, torch.Tensor) else result.sequences
        prompt = kwargs.get("input_ids", kwargs.get("inputs", args[0] if args else None))
        if isinstance(prompt, dict):
            prompt = prompt.get("input_ids")
        gen, raw = self.drawing.values(sequences)
        if prompt is None or gen is None:
            say("generate() of a form that is not known: the generator's log-probabilities are not recorded")
            return
        self._wait(sequences, prompt.shape[1], {"gen": gen, "raw": raw}, kwargs.get("generation_config"))

    def batched(self, result):
        """A batch that vLLM has made, with the log-probabilities that it drew from."""
        import torch
        gen = result.get("sampling_per_token_logps")
        if gen is None:
            if getattr(self.trainer, "use_vllm", False) and not self.waiting:
                say("vLLM's log-probabilities are not recorded: neither the batch nor the engine has any: set vllm_importance_sampling_correction")
            return
        self.flush()
        prompt = result["prompt_ids"]
        self._wait(torch.cat([prompt, result["completion_ids"]], 1), prompt.shape[1], {"gen": gen}, self.trainer)

    def _wait(self, sequences, length, sides, settings):
        """Rows of prompt and completion that wait for their score. `settings` has those of sampling."""
        for i, whole in enumerate(sequences.tolist()):
            self.wait(i, whole, length, {side: values[i].tolist() for side, values in sides.items()}, settings)

    def wait(self, number, whole, length, sides, settings):
        """One row: its prompt has so many of the ids; `sides` have log-probabilities of what follows it."""
        step = self.trainer.state.global_step
        ids, padded, end = self._stripped(whole)
        count = end - length
        if count <= 0:
            return
        row = {"ids": ids, "prompt": len(ids) - count, "padded": padded, "step": step, "version": step, "n": number,
               **{side: values[:count] for side, values in sides.items()}}
        for name, kind, neutral in (("temperature", float, 1), ("top_k", int, 0), ("top_p", float, 1), ("min_p", float, 0)):
            row[name] = kind(getattr(settings, name, None) or neutral)
        row["top_k"] = max(0, row["top_k"])
        row["sample"] = str(self.prompts.setdefault(tuple(ids[:row["prompt"]]), len(self.prompts)))
        self.waiting.setdefault(tuple(ids), []).append(row)

    def _stripped(self, ids):
        """(ids without padding on either side, how many there were on the left, the end)."""
        begin, end = 0, len(ids)
        while begin < end and ids[begin] == self.pad:
            begin += 1
        while end > begin and ids[end - 1] == self.pad:
            end -= 1
        return ids[begin:end], begin, end

    # ---- the trainer

    def _forwarded(self, model, args, kwargs, output):
        """A forward of a trainer that scores in no function that is known: its log-probabilities are those of the logits."""
        logits, ids = getattr(output, "logits", None), args[0] if args else kwargs.get("input_ids")
        if self.scoring or self.drawing is not None or logits is None or ids is None or not self.waiting:
            return
        keep = min(logits.shape[1], ids.shape[1]) - 1
        values = logits[:, -keep - 1:-1].detach().float().log_softmax(-1).gather(-1, ids[:, -keep:, None])[..., 0]
        self._take(self.refers(model), ids, keep, values, None)

    def scored(self, made, name, model, args, kwargs, result, refers):
        import torch
        if name == "_forward":  # Online DPO: prompt and completion stand apart
            prompt, mask, completion, more = args[:4]
            ids, mask, keep = torch.cat([prompt, completion], 1), torch.cat([mask, more], 1), completion.shape[1]
        else:
            ids = args[0] if args else kwargs["input_ids"]
            mask = args[1] if len(args) > 1 else kwargs["attention_mask"]
            keep = args[2] if len(args) > 2 else kwargs["logits_to_keep"]
        logps = result[0] if isinstance(result, tuple) else result
        entropy = result[1] if isinstance(result, tuple) and len(result) > 1 else None
        fresh = self._take(refers, ids, keep, logps, entropy)
        if fresh:
            self._again(lambda: made(self.trainer, model, *args, **kwargs), model, fresh)
            self._replay(model, ids, mask, keep, fresh)

    def _take(self, refers, ids, keep, logps, entropy):
        """Gives what waits its score. Returns (row of the batch, what waited, begin, count) of what the trainer scored."""
        side = "ref" if refers else "train"
        fresh = []
        for i, whole in enumerate(ids.tolist()):
            tokens, _, end = self._stripped(whole)
            rows = self.waiting.get(tuple(tokens), ())
            row = next((one for one in rows if side not in one), None)
            if row is None:
                continue
            count, begin = len(tokens) - row["prompt"], keep - (len(whole) - (end - (len(tokens) - row["prompt"])))
            if begin < 0:
                continue
            row[side] = logps[i, begin:begin + count].detach().float().tolist()
            if side == "train":
                fresh.append((i, row, begin, count))
                self.apart += [abs(g - t) for g, t in zip(row["gen"], row["train"])]
                if entropy is not None:
                    row["entropy"] = entropy[i, begin:begin + count].detach().float().tolist()
        return fresh

    def refers(self, model):
        """Whether a score is the reference model's."""
        if model is getattr(self.trainer, "ref_model", None) and model is not None:
            return True
        return any(getattr(m, "_disable_adapters", False) is True for m in model.modules()) if hasattr(model, "modules") else False

    # ---- the trainer once more

    def _again(self, score, model, fresh):
        """Scores some batches again while each module's output moves by up to a unit in the last place: what rounding may do."""
        import torch
        if self.measured >= _MEASURED:
            return

        def values():
            result = score()
            return result[0] if isinstance(result, tuple) else result
        with torch.no_grad(), evaluating(model):
            plain = values()
            with moved(model, UNITS[self.coarser]):
                apart = values() - plain
        for i, row, begin, count in fresh:
            row["again"] = [t + m for t, m in zip(row["train"], apart[i, begin:begin + count].float().tolist())]
            self.measured, self.rough = self.measured + count, max(self.rough, *apart[i, begin:begin + count].abs().tolist())

    # ---- variants of the trainer, where the two differ

    def keep(self):
        """Copies of the weights before this step, the first and the last two, where they are small."""
        step = self.trainer.state.global_step
        if self.kept and self.kept[-1][0] == step:
            return
        held = {n: p for n, p in self.trainer.model.named_parameters() if p.requires_grad}
        if sum(p.numel() * p.element_size() for p in held.values()) * 3 > _KEPT:
            return
        self.kept.append((step, {n: p.detach().clone() for n, p in held.items()}))
        if len(self.kept) > 4:
            del self.kept[1]

    def _replay(self, model, ids, mask, keep, fresh):
        import torch
        most = max(abs(g - t) for _, row, _, _ in fresh for g, t in zip(row["gen"], row["train"]))
        if most < 2 * self.rough or self.replayed >= _REPLAYED:
            return
        self.replayed += 1
        # The unchanged score shows the trainer's divisor. If neither gives it, no variant of this forward says anything.
        heats = {float(getattr(self.trainer, "temperature", None) or 1.0), 1.0}
        def scores(heat, **change):
            given = {"input_ids": ids, "attention_mask": mask, **change}
            logits = model(**{k: v for k, v in given.items() if v is not None}).logits[:, -keep - 1:-1].float() / heat
            return logits.log_softmax(-1).gather(-1, ids[:, -keep:, None])[..., 0]

        def apart(made):
            return max(abs(made[i, begin + k].item() - t) for i, row, begin, _ in fresh for k, t in enumerate(row["train"]))

        with torch.no_grad(), evaluating(model):
            plain = {heat: scores(heat) for heat in heats}
            heat = min(plain, key=lambda one: apart(plain[one]))
            if apart(plain[heat]) > max(most / 10, self.rough):
                return

            def scored(name, around, change):  # nothing if the model takes no such argument
                try:
                    with around():
                        return scores(change.pop("heat", heat), **change)
                except Exception as error:  # noqa: BLE001
                    say(f"the trainer is not scored with {name}: {type(error).__name__}: {error}")
                    return None

            def left(made):
                """How far the generator is from this, summed over its tokens."""
                return sum(abs(made[i, begin + k].item() - g) for i, row, begin, _ in fresh for k, g in enumerate(row["gen"]))

            def kept(name, made):
                for i, row, begin, count in fresh:
                    row.setdefault("replays", {})[name] = made[i, begin:begin + count].tolist()
                return left(made)

            other_heats = ({1.0} | {row["temperature"] for _, row, _, _ in fresh}) - {heat}
            tried = [(one[0], scored(*one)) for one in variants(self.trainer, self.kept, model, mask, other_heats)]
            least = min((kept(name, made) for name, made in tried if made is not None), default=1e300)
            whole = left(plain[heat])
            for family in families(model) if least > whole / 3 and self.replayed <= _SEARCHED else ():
                found = best_of(family, lambda name, around: scored(name, around, {}), left, whole / 2)
                if found:
                    kept(*found)

    def said(self):
        """What the training's log says of the samples since it said so last."""
        apart, self.apart = self.apart, []
        return {"rollout/logp_diff_mean": sum(apart) / len(apart), "rollout/logp_diff_max": max(apart)} if apart else {}

    def flush(self):
        """Writes what has both sides, and what is left of a generation that the next one follows."""
        for rows in self.waiting.values():
            for row in rows:
                row = dict(row)
                self.rollouts.add(row.pop("step"), row.pop("ids"), row.pop("prompt"), row.pop("replays", None), **row)
        self.waiting = {}
