# SPDX-License-Identifier: Apache-2.0
"""Expert parallelism of transformers: DISTRIBUTED=its configuration (a dict of Python; none: one process), IMPL=its kernels, SAVED=a
folder for the model."""
import os

import torch
import torch.distributed as dist
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM, set_seed

import common

chosen = eval(os.environ.get("DISTRIBUTED", "{}"))
config = Qwen3MoeConfig(moe_intermediate_size=16, head_dim=4, decoder_sparse_step=1, vocab_size=64, hidden_size=16, intermediate_size=16,
                        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, num_experts=4, num_experts_per_tok=2,
                        norm_topk_prob=False, router_aux_loss_coef=0.0)
if chosen:
    common.begin()
set_seed(0)
saved = os.environ["SAVED"]
if common.rank == 0:
    Qwen3MoeForCausalLM(config).save_pretrained(saved)
given = {"dtype": torch.float32, "attn_implementation": "eager", "experts_implementation": os.environ.get("IMPL", "eager")}
if chosen:
    dist.barrier()
    try:
        from transformers.distributed import DistributedConfig
    except ImportError:
        from transformers.distributed.configuration_utils import DistributedConfig
    given["distributed_config"] = DistributedConfig(**chosen)
model = Qwen3MoeForCausalLM.from_pretrained(saved, **given)
optimizer = torch.optim.AdamW(model.parameters(), common.RATE)
of = chosen.get("fsdp_size", 1)  # ranks that read samples of their own
for step in range(common.STEPS):
    ids = common.tokens(step, 4, 8)
    if of > 1:
        ids = common.share(ids, common.rank % of, of)
    model(input_ids=ids, labels=ids).loss.backward()
    common.plant(model, step, behind=True)
    optimizer.step()
    optimizer.zero_grad()
