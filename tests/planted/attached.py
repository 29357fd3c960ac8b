# SPDX-License-Identifier: Apache-2.0
"""One small training in the loops of several frameworks, none of which knows of zs_probe but where the second word is a folder:
attached.py plain|accelerate|trainer|lightning|spawned|forked|lora [FOLDER]. 4 samples a step, over the ranks; 3 steps."""
import os
import sys

import torch
from torch import nn

how = sys.argv[1]
folder = sys.argv[2] if len(sys.argv) > 2 else None
SAMPLES = torch.Generator().manual_seed(1)
X, Y = torch.randn(12, 8, generator=SAMPLES), torch.randn(12, 4, generator=SAMPLES)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x, y=None, **_):
        made = self.last(torch.tanh(self.first(x)))
        return made if y is None else {"loss": nn.functional.mse_loss(made, y), "logits": made}


def optimizer_of(model):
    return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01)


def loop(rank, ranks, net=None):
    torch.manual_seed(3)
    net = net or Net()
    if ranks > 1:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks)
        net = nn.parallel.DistributedDataParallel(net)
    optimizer = optimizer_of(net)
    if folder:
        import zs_probe
        zs_probe.attach(net, optimizer, folder)
    each = 4 // ranks
    for step in range(3):
        at = 4 * step + each * rank
        nn.functional.mse_loss(net(X[at:at + each]), Y[at:at + each]).backward()
        optimizer.step()
        optimizer.zero_grad()
    if ranks > 1:
        torch.distributed.barrier()


def plain():
    loop(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))


def spawned():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        os.environ["MASTER_PORT"] = str(s.getsockname()[1])
    torch.multiprocessing.start_processes(loop, args=(2,), nprocs=2, start_method="fork" if how == "forked" else "spawn")


def lora():
    from peft import LoraConfig, get_peft_model
    torch.manual_seed(3)
    loop(0, 1, get_peft_model(Net(), LoraConfig(r=2, target_modules=["first"], init_lora_weights=False)))


def batches():
    return torch.utils.data.DataLoader([{"x": x, "y": y} for x, y in zip(X, Y)], batch_size=4 // int(os.environ.get("WORLD_SIZE", 1)))


def accelerate():
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=1)
    torch.manual_seed(3)
    net = Net()
    net, optimizer, data = accelerator.prepare(net, optimizer_of(net), batches())
    for batch in data:
        with accelerator.accumulate(net):
            loss = net(**batch)["loss"]
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()


def trainer():
    from transformers import Trainer, TrainingArguments
    torch.manual_seed(3)
    net = Net()
    arguments = TrainingArguments(output_dir=os.environ["HOME"], use_cpu=True, per_device_train_batch_size=4 // int(os.environ.get("WORLD_SIZE", 1)), max_steps=3,
                                  learning_rate=0.01, weight_decay=0.01, lr_scheduler_type="constant", max_grad_norm=0, report_to=[], save_strategy="no",
                                  disable_tqdm=True, remove_unused_columns=False)

    class InOrder(Trainer):
        def _get_train_sampler(self, *_):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    made = InOrder(model=net, args=arguments, train_dataset=[{"x": x, "y": y} for x, y in zip(X, Y)], optimizers=(optimizer_of(net), None))
    if folder:
        import zs_probe
        zs_probe.attach(made, folder=folder)
    made.train()


def lightning():
    import pytorch_lightning as lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def training_step(self, batch, _):
            return self.net(**batch)["loss"]

        def configure_optimizers(self):
            return optimizer_of(self)

    torch.manual_seed(3)
    made = lightning.Trainer(accelerator="cpu", devices=1, max_steps=3, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    if folder:
        import zs_probe
        zs_probe.attach(made, folder=folder)
    made.fit(Module(), batches())


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"plain": plain, "spawned": spawned, "forked": spawned, "lora": lora, "accelerate": accelerate, "trainer": trainer, "lightning": lightning}[how]()
