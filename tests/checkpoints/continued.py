# SPDX-License-Identifier: Apache-2.0
"""A language model of transformers under DeepSpeed, for tests/checkpoints/continued.

continued.py model FAMILY FOLDER TOKENS: a small Llama or GPT-2 with random weights as a folder of Hugging Face, and a token file.
continued.py train FOLDER BATCHES CONFIG FIRST LAST LOAD SAVE: trains steps FIRST to LAST on the batches of `zs-train --dump_batches`
with DeepSpeed's configuration file CONFIG, from the checkpoint LOAD and to SAVE ('': none). A process is a rank: RANK and its
siblings are set. Rank 0 prints "step N loss X": the mean of all ranks."""
import os
import sys

import torch


def model(family, folder, tokens):
    import numpy
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
    torch.manual_seed(1)
    if family == "gpt2":
        made = GPT2LMHeadModel(GPT2Config(vocab_size=251, n_positions=32, n_embd=24, n_layer=2, n_head=2, resid_pdrop=0.0,
                                          embd_pdrop=0.0, attn_pdrop=0.0))
    else:
        made = LlamaForCausalLM(LlamaConfig(vocab_size=251, hidden_size=24, intermediate_size=40, num_hidden_layers=2,
                                            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32))
    made.save_pretrained(folder)
    numpy.random.default_rng(1).integers(0, 251, 4096, dtype=numpy.uint16).tofile(tokens)


def train(folder, batches, config, first, last, load, save):
    import deepspeed
    import h5py
    import torch.nn.functional as F
    import write
    import zs_probe
    from transformers import AutoModelForCausalLM
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    write.without_building()
    deepspeed.init_distributed(dist_backend="gloo")
    net = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    engine = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=config)[0]
    probe = zs_probe.attach(engine)
    if load:
        path, _ = engine.load_checkpoint(load)
        assert path, f"{load}: nothing was loaded"
    with h5py.File(batches) as file:
        tokens, targets = (torch.from_numpy(file[name][:]) for name in ("tokens", "targets"))
    assert tokens.shape[1] == ranks * engine.gradient_accumulation_steps(), tokens.shape
    for step in range(first, last + 1):
        losses = []
        for micro in range(engine.gradient_accumulation_steps()):
            leaf = rank * engine.gradient_accumulation_steps() + micro
            logits = engine(tokens[step - 1, leaf]).logits
            loss = F.cross_entropy(logits.float().flatten(0, 1), targets[step - 1, leaf].flatten())
            losses.append(loss.detach())
            probe.loss(torch.stack(losses).mean())
            engine.backward(loss)
            engine.step()
        mean = torch.stack(losses).mean()
        torch.distributed.all_reduce(mean)
        if rank == 0:
            print(f"step {step} loss {mean.item() / ranks!r}", flush=True)
    if save:
        engine.save_checkpoint(save)


if __name__ == "__main__":
    if sys.argv[1] == "model":
        model(*sys.argv[2:5])
    else:
        train(*sys.argv[2:5], int(sys.argv[5]), int(sys.argv[6]), *sys.argv[7:9])
