#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Llama of TinyLlama's shape with random weights: memory.py DIR LAYERS writes config.json and bfloat16 safetensors in four
shards with their index, a shard at a time in memory, and prints the number of parameters and that of the largest unit."""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

WIDTH, INNER, VOCABULARY, HEADS, GROUPS, SHARDS = 2048, 5632, 32000, 32, 4, 4


def shapes(layers):
    """The tensors of each unit, by name."""
    kv = WIDTH // HEADS * GROUPS
    yield {"model.embed_tokens.weight": (VOCABULARY, WIDTH)}
    for i in range(layers):
        block = {"self_attn.q_proj": (WIDTH, WIDTH), "self_attn.k_proj": (kv, WIDTH), "self_attn.v_proj": (kv, WIDTH),
                 "self_attn.o_proj": (WIDTH, WIDTH), "mlp.gate_proj": (INNER, WIDTH), "mlp.up_proj": (INNER, WIDTH),
                 "mlp.down_proj": (WIDTH, INNER), "input_layernorm": (WIDTH,), "post_attention_layernorm": (WIDTH,)}
        yield {f"model.layers.{i}.{name}.weight": shape for name, shape in block.items()}
    yield {"model.norm.weight": (WIDTH,), "lm_head.weight": (VOCABULARY, WIDTH)}


def main():
    root, layers = Path(sys.argv[1]), int(sys.argv[2])
    root.mkdir(parents=True)
    torch.manual_seed(1)
    config = dict(model_type="llama", hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=layers, num_attention_heads=HEADS,
                  num_key_value_heads=GROUPS, vocab_size=VOCABULARY, max_position_embeddings=2048, rms_norm_eps=1e-5, torch_dtype="bfloat16")
    (root / "config.json").write_text(json.dumps(config))
    units = list(shapes(layers))
    counts = [sum(torch.Size(shape).numel() for shape in unit.values()) for unit in units]
    weight_map = {}
    for shard in range(SHARDS):
        name = f"model-{shard + 1:05}-of-{SHARDS:05}.safetensors"
        own = [unit for number, unit in enumerate(units) if number * SHARDS // len(units) == shard]
        tensors = {key: torch.ones(shape, dtype=torch.bfloat16) if len(shape) == 1 else torch.empty(shape, dtype=torch.bfloat16).normal_(std=0.02)
                   for unit in own for key, shape in unit.items()}
        save_file(tensors, str(root / name), {"format": "pt"})
        weight_map.update(dict.fromkeys(tensors, name))
    index = {"metadata": {"total_size": 2 * sum(counts)}, "weight_map": weight_map}
    (root / "model.safetensors.index.json").write_text(json.dumps(index))
    print(sum(counts), max(counts))


main()
