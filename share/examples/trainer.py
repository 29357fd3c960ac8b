# SPDX-License-Identifier: Apache-2.0
"""The same Llama under the Trainer of Hugging Face: torchrun trainer.py --output_dir out [--deepspeed ds.json] [--fsdp "full_shard auto_wrap"]

All options are the Trainer's own. It goes on with --resume_from_checkpoint CHECKPOINT.
"""
import torch
from transformers import HfArgumentParser, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    """Every next token follows from the one before."""

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        tokens = (index + 7 * torch.arange(64)) % 256
        return {"input_ids": tokens, "labels": tokens}


def main():
    arguments = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]
    torch.manual_seed(arguments.seed)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                         num_key_value_heads=2, max_position_embeddings=64, use_cache=False))
    Trainer(model=model, args=arguments, train_dataset=Tokens()).train(resume_from_checkpoint=arguments.resume_from_checkpoint)


if __name__ == "__main__":
    main()
