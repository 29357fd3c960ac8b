# SPDX-License-Identifier: Apache-2.0
"""The trainings of train.py in the loops of Accelerate and of transformers' Trainer."""
import os
import tempfile

import torch


class Loops:
    """Of a Training."""

    def accelerate(self):
        from accelerate import Accelerator
        o = self.o
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=o.accumulation)
        self.model, self.opt = accelerator.prepare(self.net, self.optimizer(self.groups(self.net)))
        schedule = torch.optim.lr_scheduler.LambdaLR(self.opt.optimizer, lambda s: 1 / (1 + 0.1 * s)) if o.schedule else None
        for step in range(o.steps):
            self.step = step
            for micro in range(o.accumulation):
                with accelerator.accumulate(self.model):
                    accelerator.backward(self.loss(self.model, step, micro))
                    if accelerator.sync_gradients:
                        self.before_step()
                        if o.clip:
                            accelerator.clip_grad_norm_(self.model.parameters(), o.clip)
                    self.opt.step()
                    self.opt.zero_grad()
            if schedule:
                schedule.step()

    def trainer(self):
        import transformers
        o, training = self.o, self
        each = o.samples // (o.ranks * o.accumulation)
        data = []  # a rank's share of a step's samples is every n-th of its batches
        for step in range(o.steps):
            self.step = step
            for micro in range(o.accumulation):
                for rank in range(o.ranks):
                    self.data_rank = rank
                    data += [{"ids": ids[:-1], "labels": ids[1:]} for ids in self.batch(step, micro, rank)]
        self.data_rank, self.step = self.rank, 0
        optimizer = self.optimizer(self.groups(self.net))
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 1 / (1 + 0.1 * s) if o.schedule else 1)
        arguments = transformers.TrainingArguments(
            output_dir=tempfile.gettempdir() + f"/trainer-{os.getpid()}", use_cpu=True, per_device_train_batch_size=each, gradient_accumulation_steps=o.accumulation, max_steps=o.steps,
            max_grad_norm=o.clip, report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True, remove_unused_columns=False, seed=o.seed)

        class Counting(transformers.TrainerCallback):
            def on_step_begin(self, _, state, *args, **kwargs):
                training.step = state.global_step
                training.ends()

        class InOrder(transformers.Trainer):
            def _get_train_sampler(self, *_):
                return torch.utils.data.SequentialSampler(self.train_dataset)

        self.model = self.net
        InOrder(model=self.net, args=arguments, train_dataset=data, optimizers=(optimizer, schedule), callbacks=[Counting()]).train()
