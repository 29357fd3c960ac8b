# SPDX-License-Identifier: Apache-2.0
"""A training of a small network, which knows nothing of zs_probe: train.py KEY=JSON...

The keys and what they stand for are in `chosen` below. engine "plain" does in one process what `ranks` ranks would do.
"""
import atexit
import json
import os
import sys
import tempfile

import torch
from torch import nn

from gloo import begin, older

chosen = dict(
    engine="deepspeed",  # deepspeed, pipeline, trainer (of transformers), accelerate, plain
    ranks=2, accumulation=1, steps=4, stage=2, precision="float32", optimizer="adamw", rate=0.01, bias=True, inputs=12, width=24, outputs=6,
    loop="usual",  # usual; unscaled: the training divides its loss itself; manual: micro-batches that the configuration does not know; told: and of which the engine is told the last
    zero={}, config={}, clip=0.0, factor=1.0,
    experts=0, parallel=1,  # experts, and ranks that share them
    twice=False,  # each layer in the middle is used twice
    filled=False,  # memory that nobody has written is not a number
    batches=0,  # of an epoch, if the training goes over its data again; what is left of an epoch makes a smaller step
    warmup=0,  # steps of a rate that rises
    groups=1,  # of parameters; the second learns at a quarter of the rate
    stages=2, until=0, folder="", clear=False)  # until: leave a checkpoint in the folder after so many steps; or resume from it
for word in sys.argv[1:]:
    key, _, value = word.partition("=")
    assert key in chosen, f"{key} is no setting"
    chosen[key] = json.loads(value)
o = type("Settings", (), chosen)
rank = int(os.environ.get("RANK", 0))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(o.inputs, o.width, bias=o.bias)
        self.middle = nn.ModuleList(nn.Linear(o.width, o.width, bias=o.bias) for _ in range(2))
        if o.experts:
            from deepspeed.moe.layer import MoE
            self.moe = MoE(hidden_size=o.width, expert=nn.Linear(o.width, o.width), num_experts=o.experts, ep_size=o.parallel, k=1,
                           use_residual=False, capacity_factor=8.0, min_capacity=4, use_rts=False, drop_tokens=False)
        self.last = nn.Linear(o.width, o.outputs, bias=o.bias)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        if o.experts:
            x = x + self.moe(x)[0]
        else:
            for layer in self.middle:
                x = torch.tanh(layer(x))
                if o.twice:
                    x = torch.tanh(layer(x))
        return self.last(x)


def batch(step, micro, of_rank):
    source = torch.Generator().manual_seed(1 + micro + 64 * of_rank + 4096 * step)
    return torch.randn(5, o.inputs, generator=source), torch.randn(5, o.outputs, generator=source)


def loss_of(model, step, micro, of_rank=rank):
    x, y = batch(step, micro, of_rank)
    return nn.functional.mse_loss(model(x.to(getattr(torch, o.precision) if o.engine != "plain" else x.dtype)).float(), y) * o.factor


def optimizer_of(model):
    parameters = [p for p in model.parameters() if p.requires_grad]
    if o.experts:
        from deepspeed.moe.utils import split_params_into_different_moe_groups_for_optimizer
        parameters = split_params_into_different_moe_groups_for_optimizer([{"params": parameters, "name": "all"}])
    elif o.groups == 2:
        half = len(parameters) // 2
        parameters = [{"params": parameters[:half], "lr": o.rate}, {"params": parameters[half:], "lr": o.rate / 4}]
    return {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[o.optimizer](parameters, lr=o.rate)


def epochs():
    """Of each step the numbers of its micro-batches."""
    made = [list(range(o.batches))[first:first + o.accumulation] for first in range(0, o.batches, o.accumulation)]
    return [made[step % len(made)] for step in range(o.steps)]


def schedule_of(optimizer):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / (o.warmup + 1)))


def alone():
    """One process, which no launcher has told of others."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        os.environ.pop(name, None)


class WithLoss(Net):
    def forward(self, x, y):
        return {"loss": nn.functional.mse_loss(Net.forward(self, x), y)}


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 5 * o.batches

    def __getitem__(self, number):
        x, y = batch(0, number // 5, 0)
        return {"x": x[number % 5], "y": y[number % 5]}


def plain_epochs():
    model = WithLoss()
    optimizer = optimizer_of(model)
    schedule = schedule_of(optimizer)
    for micros in epochs():
        for micro in micros:
            x, y = batch(0, micro, 0)
            (model(x=x, y=y)["loss"] / len(micros)).backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


def with_trainer():
    """transformers' own loop, in one process."""
    alone()
    from transformers import Trainer, TrainingArguments

    class InOrder(Trainer):
        def _get_train_sampler(self, *_):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    model = WithLoss()
    optimizer = optimizer_of(model)
    settings = TrainingArguments(output_dir=o.folder or tempfile.mkdtemp(), per_device_train_batch_size=5, gradient_accumulation_steps=o.accumulation, max_steps=o.steps,
                                 max_grad_norm=0.0, use_cpu=True, report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
                                 remove_unused_columns=False, seed=5)
    InOrder(model=model, args=settings, train_dataset=Samples(), optimizers=(optimizer, schedule_of(optimizer))).train()


def with_accelerate():
    """A loop as Accelerate's pages have it."""
    alone()
    sys.modules["transformers"] = None  # which this Python has for tests/trainers: a release of Accelerate would import another's
    from accelerate import Accelerator
    helper = Accelerator(gradient_accumulation_steps=o.accumulation, cpu=True)
    model = WithLoss()
    optimizer = optimizer_of(model)
    loader = torch.utils.data.DataLoader(Samples(), batch_size=5)
    model, optimizer, loader, schedule = helper.prepare(model, optimizer, loader, schedule_of(optimizer))
    for _ in range(o.steps * o.accumulation // o.batches):
        for given in loader:
            with helper.accumulate(model):
                helper.backward(model(**given)["loss"])
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()


def plain():
    if o.batches:
        return plain_epochs()
    model = Net()
    optimizer = optimizer_of(model)
    for step in range(o.steps):
        for of_rank in range(o.ranks):
            for micro in range(o.accumulation):
                (loss_of(model, step, micro, of_rank) / (o.ranks * o.accumulation)).backward()
        optimizer.step()
        optimizer.zero_grad()


def configuration():
    made = {"train_micro_batch_size_per_gpu": 5, "gradient_accumulation_steps": 1 if o.loop in ("manual", "told") else o.accumulation,
            "steps_per_print": 1000, "zero_allow_untested_optimizer": True, "zero_optimization": {"stage": o.stage, **o.zero}}
    if o.clip is not None:
        made["gradient_clipping"] = o.clip
    if o.precision == "bfloat16":
        made["bf16"] = {"enabled": True}
    return {**made, **o.config}


def with_engine():
    deepspeed = begin()
    model = Net()
    if o.experts:
        del model.middle
    own = "optimizer" in o.config
    given = {"model_parameters": [p for p in model.parameters()]} if own else {"optimizer": optimizer_of(model)}
    engine = deepspeed.initialize(model=model, config=configuration(), **given)[0]
    first, last = 0, o.until or o.steps
    if o.folder and not o.until:
        assert engine.load_checkpoint(o.folder)[0]
        first = engine.global_steps
    for step in range(first, last):
        for micro in range(o.accumulation):
            loss = loss_of(engine, step, micro)
            if o.loop == "unscaled":
                engine.backward(loss / o.accumulation, scale_wrt_gas=False)
            elif o.loop in ("manual", "told"):
                if o.loop == "told":
                    engine.set_gradient_accumulation_boundary(micro == o.accumulation - 1)
                engine.backward(loss / o.accumulation)
            else:
                engine.backward(loss)
            if o.loop not in ("manual", "told") or micro == o.accumulation - 1:
                engine.step()
        if o.clear:
            engine.module.zero_grad()
    if o.until:
        engine.save_checkpoint(o.folder)


def with_pipeline():
    deepspeed = begin()
    from deepspeed.pipe import PipelineModule
    layers = [nn.Linear(o.inputs, o.width), nn.Tanh(), nn.Linear(o.width, o.width), nn.Tanh(), nn.Linear(o.width, o.outputs)]
    model = PipelineModule(layers=layers, num_stages=o.stages, loss_fn=nn.functional.mse_loss, partition_method="uniform", activation_checkpoint_interval=0)
    engine = deepspeed.initialize(model=model, config=configuration(), optimizer=optimizer_of(model))[0]
    for step in range(o.steps):
        engine.train_batch(iter([batch(step, micro, engine.grid.get_data_parallel_rank()) for micro in range(o.accumulation)]))


torch.manual_seed(5)
torch.set_num_threads(1)
torch.use_deterministic_algorithms(o.filled)
older()
{"plain": plain, "deepspeed": with_engine, "pipeline": with_pipeline, "trainer": with_trainer, "accelerate": with_accelerate}[o.engine]()
if o.engine in ("deepspeed", "pipeline"):
    torch.distributed.barrier()
atexit._run_exitfuncs()  # a recording has an end
os._exit(0)  # DeepSpeed's threads are not waited for
