# SPDX-License-Identifier: Apache-2.0
"""Writes log-probabilities as a generator and a trainer would: rollouts.py FOLDER [FAULT], with the fault `shift` or
`temperature`, or none. A random policy stands for the model."""
import math
import random
import sys

import zs_probe

folder, fault = sys.argv[1], (sys.argv[2:] or [""])[0]
draw = random.Random(1)
log = zs_probe.Rollouts(folder, "mine", generator_dtype="F32", trainer_dtype="F32")


def log_softmax(logits):
    total = math.log(sum(math.exp(x) for x in logits))
    return [x - total for x in logits]


for step in range(3):
    for sample in range(8):
        prompt, answer, gen, train, entropy = [1, 2, 3], [], [], [], []
        for _ in range(16):
            logits = [draw.gauss(0, 1.5) for _ in range(20)]
            drawn = log_softmax([x / 0.7 for x in logits] if fault == "temperature" else logits)
            scored = log_softmax(logits)
            token = draw.choices(range(20), [math.exp(x) for x in drawn])[0]
            answer.append(token)
            gen.append(drawn[token] + draw.gauss(0, 3e-7))
            train.append(scored[token])
            entropy.append(-sum(math.exp(x) * x for x in scored))
        if fault == "shift":
            gen = gen[1:] + gen[:1]
        log.add(step, prompt + answer, len(prompt), gen=gen, train=train, entropy=entropy, sample=str(sample), version=step)
