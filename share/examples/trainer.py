# SPDX-License-Identifier: Apache-2.0
"""The same Llama under the Trainer of Hugging Face: torchrun trainer.py --output_dir out [--deepspeed ds.json] [--fsdp "full_shard auto_wrap"]

All options but one are the Trainer's own. It goes on with --resume_from_checkpoint CHECKPOINT. --stop_after N saves and ends after step N, while
the schedule stays that of --max_steps: for zs-verify --resume.
"""
import dataclasses

import torch
from transformers import HfArgumentParser, LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments


@dataclasses.dataclass
class Own:
    stop_after: int = 0


class StopAfter(TrainerCallback):
    def __init__(self, steps):
        self.steps = steps

    def on_step_end(self, args, state, control, **_):
        if state.global_step == self.steps:
            control.should_save = control.should_training_stop = True


class Tokens(torch.utils.data.Dataset):
    """Every next token follows from the one before."""

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        tokens = (index + 7 * torch.arange(64)) % 256
        return {"input_ids": tokens, "labels": tokens}


def main():
    arguments, own = HfArgumentParser((TrainingArguments, Own)).parse_args_into_dataclasses()
    torch.manual_seed(arguments.seed)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                         num_key_value_heads=2, max_position_embeddings=64, use_cache=False))
    trainer = Trainer(model=model, args=arguments, train_dataset=Tokens(), callbacks=[StopAfter(own.stop_after)])
    trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)


if __name__ == "__main__":
    main()
