# SPDX-License-Identifier: Apache-2.0
"""Writes dumps of log-probabilities: rollouts.py FORM FAULT FOLDER. A random policy draws tokens; generator and trainer score
them, one of them with a fault."""
import json
import math
import os
import pickle
import random
import struct
import sys
import zipfile

VOCABULARY, STEPS, ROWS, LENGTH, PROMPT = 24, 4, 12, 16, 5


def softmax(z):
    top = max(z)
    lse = top + math.log(sum(math.exp(x - top) for x in z))
    return [x - lse for x in z]


def float32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Policy:
    """Logits by step, sample and position: `version` says how often the weights have moved."""

    def __init__(self, seed, size=0.35):
        self.seed, self.size = seed, size

    def logits(self, sample, position, version):
        base = random.Random(f"{self.seed} {sample} {position}")
        z = [base.gauss(0, 1.5) for _ in range(VOCABULARY)]
        for v in range(1, version + 1):
            moved = random.Random(f"{self.seed} {sample} {position} {v}")
            z = [x + moved.gauss(0, self.size) for x in z]
        return z


def rows(fault, seed=7):
    policy, draw = Policy(seed), random.Random(seed)
    noise = random.Random(seed + 1)
    heat = 0.8 if fault in ("temperature-gen", "temperature-train", "cold") else 1.0
    for step in range(STEPS):
        for n in range(ROWS):
            sample = step * ROWS + n
            padded = 3 if n % 2 else 0
            row = {"step": step, "version": {"stale": max(0, step - 1), "never": 0}.get(fault, step), "sample": str(sample), "n": n, "padded": padded, "temperature": heat, "gen": [], "train": [], "ref": [], "raw": [], "entropy": [], "cached": 4 if n % 3 == 0 else 0}
            ids = [draw.randrange(2, VOCABULARY) for _ in range(PROMPT)]
            for i in range(LENGTH):
                z = policy.logits(sample, i, step)
                behind = {"stale": max(0, step - 1), "never": 0, "reference": 0}.get(fault, step)
                drawn = [x / heat for x in policy.logits(sample, i, behind)]
                if fault == "padding" and padded:
                    drawn = [x + noise.gauss(0, 0.05) for x in drawn]
                if fault == "cache" and row["cached"]:
                    drawn = [x + noise.gauss(0, 0.1) for x in drawn]
                if fault == "bf16":
                    drawn = [x + noise.gauss(0, 0.012) for x in drawn]
                if fault in ("rough", "again"):
                    drawn = [x + noise.gauss(0, 0.06) for x in drawn]
                if fault in ("embedding", "embeddings") and (9 in ids or fault == "embeddings" and n % 5 == 0):
                    drawn = [x + noise.gauss(0, 0.6) for x in drawn]
                if fault == "noise":
                    drawn = [x + noise.gauss(0, 0.6) for x in drawn]
                raw = softmax(drawn if fault != "top-k" else list(drawn))
                if fault == "top-k":
                    kept = sorted(drawn)[-8]
                    drawn = [x if x >= kept else -1e9 for x in drawn]
                if fault == "penalty":
                    drawn = [x - (k % 3) for k, x in enumerate(drawn)]
                gen = softmax(drawn)
                token = draw.choices(range(VOCABULARY), [math.exp(x) for x in gen])[0]
                trained = softmax([x / heat for x in z])
                if fault == "temperature-gen":
                    trained = softmax(z)
                if fault == "temperature-train":
                    gen = softmax(z)
                rounded = (lambda x: float32(x + noise.gauss(0, 3e-7))) if fault != "exact" else float32
                ids.append(token)
                row["gen"].append(rounded(gen[token]))
                row["train"].append(float32(trained[token]))
                row["raw"].append(rounded(raw[token]))
                row["ref"].append(float32(softmax([x / heat for x in policy.logits(sample, i, 0)])[token]))
                row["entropy"].append(float32(-sum(math.exp(x) * x for x in trained)))
            if fault == "again":  # the trainer's own rounding is as large
                row["again"] = [float32(x + noise.gauss(0, 0.05)) for x in row["train"]]
            if fault == "shift":
                row["gen"] = [row["gen"][0], *row["gen"][:-1]]
            if fault == "nan" and sample == 5:
                row["gen"][3] = float("nan")
            if fault != "penalty":
                del row["raw"]
            if fault != "reference":
                del row["ref"]
            row.update(ids=ids, prompt=PROMPT)
            yield row


def quoted(row):
    return {k: [str(x) if isinstance(x, float) and x != x else x for x in v] if isinstance(v, list) else v for k, v in row.items()}


def zs(all_rows, folder, fault, sides=("gen", "train")):
    with open(os.path.join(folder, "rollout-0.jsonl"), "w") as file:
        dtype = "BF16" if fault in ("bf16", "rough", "again") else "F32"
        file.write(json.dumps({"zs_rollout": 1, "rank": 0, "system": "TRL", "generator_dtype": dtype, "trainer_dtype": "F32", "experts": False}) + "\n")
        for row in all_rows:
            file.write(json.dumps(quoted({k: v for k, v in row.items() if k in sides or k not in ("gen", "train")})) + "\n")


def nemo(all_rows, folder, fault):
    """As the logger of NeMo-RL 0.7.0 writes: micro-batches of one sample, so that each value is a list of one."""
    for step in range(STEPS):
        with open(os.path.join(folder, f"train_data_step{step}.jsonl"), "w") as file:
            for i, row in enumerate(r for r in all_rows if r["step"] == step):
                pad = [0] * 3
                file.write(json.dumps({
                    "content": ["text"], "rewards": [1.0], "input_lengths": [len(row["ids"])], "token_ids": [row["ids"] + pad],
                    "token_loss_mask": [[0.0] * PROMPT + [1.0] * LENGTH + pad], "sample_loss_mask": [1.0], "advantages": [[0.0] * (PROMPT + LENGTH) + pad],
                    "generation_logprobs": [[0.0] * PROMPT + row["gen"] + pad], "prev_logprobs": [[-1.0] * PROMPT + row["train"] + pad], "idx": i}) + "\n")


def slime(all_rows, folder, fault):
    for side, name in (("rollout_data", "gen"), ("train_data", "train")):
        os.makedirs(os.path.join(folder, side))
        for step in range(STEPS):
            samples = []
            for row in (r for r in all_rows if r["step"] == step):
                index = int(row["sample"])
                if name == "gen":
                    samples.append({"group_index": 0, "index": index, "prompt": "text", "tokens": row["ids"], "response": "text", "response_length": LENGTH,
                                    "loss_mask": [1] * LENGTH, "weight_versions": [str(step)], "rollout_log_probs": row["gen"], "status": "completed"})
                else:
                    samples.append({"data_parallel_rank": 0, "sample_index": index, "rollout_position": index, "tokens": row["ids"], "response_lengths": LENGTH,
                                    "loss_masks": [1] * LENGTH, "log_probs": row["train"], "rollout_log_probs": row["gen"], "total_lengths": PROMPT + LENGTH})
            root = {"rollout_id": step, "samples": samples} if name == "gen" else {"format_version": 2, "rollout_id": step, "rank": 0, "samples": samples, "dp_shards": []}
            with zipfile.ZipFile(os.path.join(folder, side, f"{step}.pt"), "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(f"{step}/data.pkl", pickle.dumps(root, 2))
                archive.writestr(f"{step}/byteorder", "little")
                archive.writestr(f"{step}/version", "3\n")


def skyrl(all_rows, folder, fault):
    import types
    module = types.ModuleType("skyrl_training_batch")

    class TrainingInputBatch(dict):
        def __reduce__(self):
            return module._rebuild_tensor_batch, (type(self), {"batch_dict": dict(self), "batch_size": len(self), "device": None, "metadata": {}})

    def _rebuild_tensor_batch(kind, state):
        return kind(state["batch_dict"])

    for one in (TrainingInputBatch, _rebuild_tensor_batch):
        one.__module__, one.__qualname__ = module.__name__, one.__name__
        setattr(module, one.__name__, one)
    sys.modules[module.__name__] = module

    def array(values, letter, dtype):
        flat = [x for row in values for x in row]
        return {"format": "numpy", "data": struct.pack(f"<{len(flat)}{letter}", *flat), "shape": (len(values), len(values[0])), "dtype": dtype}

    for step in range(STEPS):
        mine = [r for r in all_rows if r["step"] == step]
        left = 3
        batch = TrainingInputBatch(
            sequences=array([[0] * left + r["ids"] for r in mine], "q", "int64"), attention_mask=array([[0] * left + [1] * len(r["ids"]) for r in mine], "q", "int64"),
            response_mask=array([[1] * LENGTH for _ in mine], "q", "int64"), loss_mask=array([[1] * LENGTH for _ in mine], "q", "int64"),
            action_log_probs=array([r["train"] for r in mine], "f", "float32"), rollout_logprobs=array([r["gen"] for r in mine], "f", "float32"))
        with open(os.path.join(folder, f"global_step_{step}_training_input.pkl"), "wb") as file:
            pickle.dump(batch, file)


def msgpack(value):
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return b"\xd3" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"\xdb" + struct.pack(">I", len(value)) + value.encode()
    return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(msgpack, value))


def prime(all_rows, folder, fault):
    for step in range(STEPS):
        mine = [r for r in all_rows if r["step"] == step]
        flat = lambda take: [x for r in mine for x in take(r)]  # noqa: E731
        batch = [flat(lambda r: r["ids"]), flat(lambda r: [False] * PROMPT + [True] * LENGTH), flat(lambda r: [0.0] * len(r["ids"])),
                 flat(lambda r: [0.0] * PROMPT + r["gen"]), flat(lambda r: list(range(len(r["ids"])))), [len(r["ids"]) for r in mine],
                 flat(lambda r: [1.0] * len(r["ids"])), ["env"] * len(mine), [len(r["ids"]) for r in mine]]
        os.makedirs(os.path.join(folder, f"step_{step}"))
        with open(os.path.join(folder, f"step_{step}", "rank_0.bin"), "wb") as file:
            file.write(msgpack([batch]))


def torchtitan(all_rows, folder, fault):
    with open(os.path.join(folder, "rollout_samples.jsonl"), "w") as file:
        for row in all_rows:
            turn = {"turn_id": 0, "min_policy_version": row["step"], "max_policy_version": row["step"], "prompt_messages": [{"role": "user", "content": "text"}],
                    "completion_message": {"role": "assistant", "content": "text"}, "env_messages": [], "env_rewards": {}, "prompt_token_ids": row["ids"][:PROMPT],
                    "completion_token_ids": row["ids"][PROMPT:], "completion_logprobs": row["gen"]}
            file.write(json.dumps({"is_validation": False, "group_id": row["step"], "rollout_id": row["n"],
                                   "status": "completed", "reward": 1.0, "reward_breakdown": {}, "advantage": 0.0, "turns": [turn]}) + "\n")


if __name__ == "__main__":
    form, fault, folder = sys.argv[1:4]
    os.makedirs(folder, exist_ok=True)
    made = list(rows(fault))
    if form == "trainer":
        zs(made, folder, fault, ("train",))
    elif form == "generator":
        if len(sys.argv) > 4:  # another template: one token of each prompt
            for one in made:
                one["ids"][2] = 1
        zs(made, folder, fault, ("gen",))
    else:
        {"zs": zs, "nemo": nemo, "slime": slime, "skyrl": skyrl, "prime": prime, "torchtitan": torchtitan}[form](made, folder, fault)
