#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logs of many runs with planted faults: many_logs.py DIR [RUNS] writes two thirds of DeepSpeed's form (ref_000.log ..)
and one third of Hugging Face's (hf_000.log ..). Of 300: ref_070 to ref_074 take 30 % longer for a step, ref_120 and
ref_150 have a higher loss, hf_055 has a nan, hf_077 has 70 % of the throughput. many_logs.py --long FILE [ROWS] writes
one log of so many steps, 361,000 without a number, with one nan, one peak and one hollow."""
import math
import random
import sys
from pathlib import Path

STEPS = 60


def namespace(**values):
    return "Namespace(" + ", ".join(f"{key}={value!r}" for key, value in values.items()) + ")\n"


def reference(number):
    chance = random.Random(number)
    slow = 1.3 if 70 <= number < 75 else 1
    extra = 0.35 if number in (120, 150) else 0
    text = namespace(model_name="meta-llama/Meta-Llama-3-8B", batch_size=1, seq_length=512, learning_rate=1e-5,
                     dataset_name="wikitext", gradient_accumulation_steps=4, zero_stage=3, bench_step=10 * STEPS,
                     wandb_run_name=f"r{number}")
    pace = 0.48 * slow * chance.gauss(1, 0.004)
    for step in range(10, 10 * STEPS + 1, 10):
        loss = 2.1 + 8.2 * math.exp(-step / 120) + extra * (1 - math.exp(-step / 200)) + chance.gauss(0, 0.02)
        text += (f"Epoch {1 + step // 300}, Step {step}, Loss: {loss:.6f} sync: True "
                 f"time: {pace * chance.gauss(1, 0.01):.4f} alloc_mem: 28307113472 peak_mem: {50064946688 + 4096 * chance.randrange(99)}\n")
    return text


def trainer(number):
    chance = random.Random(1000 + number)
    text = ""
    for step in range(1, STEPS + 1):
        loss = 1.4 + 2.2 * math.exp(-step / 14) + chance.gauss(0, 0.02)
        value = "nan" if number == 55 and step >= 40 else f"{loss:.4f}"
        text += f"{step}/{STEPS} [00:05<04:20,  1.88it/s]{{'loss': {value}, 'grad_norm': {chance.uniform(1, 2):.4f}, 'learning_rate': 5e-05, 'epoch': {step / 20:.2f}}}\n"
    rate = 81.5 * chance.gauss(1, 0.005) * (0.7 if number == 77 else 1)
    return text + f"{{'train_runtime': {960 / rate:.4f}, 'train_samples_per_second': {rate:.3f}, 'train_loss': 1.6, 'epoch': 3.0}}\n"


def long_log(path, rows):
    chance = random.Random(7)
    with open(path, "w") as file:
        for step in range(1, rows + 1):
            loss = 2 + 6 * (step / 50 + 1) ** -0.5 + chance.gauss(0, 0.05)
            loss = math.nan if step == rows // 3 else 9.5 if step == rows // 2 else 0.25 if step == rows // 2 + 9 else loss
            file.write(f"Epoch 1, Step {step}, Loss: {loss:.6f} sync: True time: {0.02 * chance.gauss(1, 0.02):.5f} "
                       f"alloc_mem: 2830711347 peak_mem: 5006494668\n")


def main():
    if sys.argv[1] == "--long":
        return long_log(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 361_000)
    folder, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(runs - runs // 3):
        (folder / f"ref_{number:03}.log").write_text(reference(number))
    for number in range(runs // 3):
        (folder / f"hf_{number:03}.log").write_text(trainer(number))


main()
