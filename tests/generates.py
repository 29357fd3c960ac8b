# SPDX-License-Identifier: Apache-2.0
"""Trains a small Llama by reinforcement with TRL, as its users do: generates.py ALGORITHM FAULT. The algorithm is grpo or rloo; the
fault is none, temperature (the generator draws at 0.7, the trainer scores at 1), never (it draws from the first weights),
mask (it attends to the padding) or rotary (its base is twice as large). Nothing here knows of zs_probe."""
import sys
import tempfile

import torch
import transformers
from datasets import Dataset
from datasets.table import InMemoryTable
from tokenizers import Tokenizer, models, pre_tokenizers

import trl

ALGORITHM, FAULT = sys.argv[1:3]
LETTERS = ["<pad>", "<eos>", *sorted(pre_tokenizers.ByteLevel.alphabet())]


def tokenizer():
    made = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(LETTERS)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", padding_side="left")


class Llama(transformers.LlamaForCausalLM):
    """Its generate() has the fault."""

    first = None

    def generate(self, *args, **kwargs):
        if FAULT == "temperature":
            kwargs["generation_config"].temperature = 0.7
        if FAULT == "mask":
            kwargs["attention_mask"] = torch.ones_like(kwargs["attention_mask"])
        if FAULT == "rotary":
            rotary = self.model.rotary_emb
            held, powers = rotary.inv_freq, torch.arange(len(rotary.inv_freq)) / len(rotary.inv_freq)
            rotary.inv_freq = held * 2.0 ** -powers
            try:
                return super().generate(*args, **kwargs)
            finally:
                rotary.inv_freq = held
        if FAULT != "never":
            return super().generate(*args, **kwargs)
        now = {name: tensor.clone() for name, tensor in self.state_dict().items()}
        self.first = self.first or now
        self.load_state_dict(self.first)
        try:
            return super().generate(*args, **kwargs)
        finally:
            self.load_state_dict(now)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Llama(transformers.LlamaConfig(
        vocab_size=len(LETTERS), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, pad_token_id=0, eos_token_id=1, initializer_range=0.2))
    kind, settings = (trl.GRPOTrainer, trl.GRPOConfig) if ALGORITHM == "grpo" else (trl.RLOOTrainer, trl.RLOOConfig)
    args = settings(output_dir=tempfile.mkdtemp(), use_cpu=True, bf16=False, gradient_checkpointing=False, per_device_train_batch_size=8, num_generations=4,
                    max_completion_length=16, max_steps=3, save_strategy="no", report_to=[], learning_rate=1e-3, seed=3, beta=0.0, logging_steps=1)
    kind(model=model, reward_funcs=lambda completions, **_: [float(len(set(one))) for one in completions], args=args, processing_class=tokenizer(),
         train_dataset=Dataset(InMemoryTable.from_pydict({"prompt": ["one", "twenty two", "x"] * 8}), fingerprint="prompts")).train()


main()
