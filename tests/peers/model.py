#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random small models of Hugging Face's transformers, and what it computes with them, for lib/training/train/peer_test.cpp.

model.py write DIR         a folder for every variation of a configuration
model.py record DIR        the small ones that are checked in (tests/data/peers)
model.py same A B          whether two folders of one model give the same logits, bit by bit; status 1 if not
model.py adapters M A B    whether two folders of peft's adapters of the model M do
model.py merged M A B      whether the model B computes, to rounding, what the adapters A of the model M do
"""
import json
import sys
from pathlib import Path
from unittest import mock

import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import save_file
from transformers import (AutoModelForCausalLM, AutoModelForImageClassification, GPT2Config, GPT2LMHeadModel, ViTConfig,
                          ViTForImageClassification, ViTModel)

STEPS, LEARNING_RATE, B, T = 5, 3e-4, 2, 12
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 1e4}
LONGROPE = {"rope_type": "longrope", "short_factor": [1.0, 1.5], "long_factor": [2.0, 3.5], "rope_theta": 1e4}
LINEAR_BEYOND = {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 5e4},
                 "sliding_attention": {"rope_type": "default", "rope_theta": 1e3}}


def decoder(kind, **changes):
    """A model of the family whose classes are kindConfig and kindForCausalLM, or of Gemma 3's text."""
    sizes = dict(vocab_size=64, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                 max_position_embeddings=64, bos_token_id=0, eos_token_id=1, pad_token_id=None)
    config = getattr(transformers, ("Gemma3Text" if kind == "Gemma3" else kind) + "Config")(**{**sizes, **changes})
    return getattr(transformers, kind + "ForCausalLM")(config)


def llama(**changes):
    return decoder("Llama", **changes)


def qwen2(**changes):
    return decoder("Qwen2", **changes)


def qwen3(**changes):
    return decoder("Qwen3", **{"head_dim": 6, **changes})


def mistral(**changes):
    return decoder("Mistral", **{"sliding_window": 5, **changes})


def olmo2(**changes):
    return decoder("Olmo2", **changes)


def phi3(**changes):
    return decoder("Phi3", **changes)


def gemma2(**changes):
    return decoder("Gemma2", **{"head_dim": 6, "query_pre_attn_scalar": 7, "sliding_window": 5, "attn_logit_softcapping": 2.0,
                                "final_logit_softcapping": 3.0, **changes})


def gemma3(**changes):
    return decoder("Gemma3", **{"head_dim": 6, "query_pre_attn_scalar": 7, "sliding_window": 5,
                                "layer_types": ["sliding_attention", "full_attention"], **changes})


def mixtral(**changes):
    return decoder("Mixtral", **{"num_local_experts": 4, **changes})


def qwen3_moe(**changes):
    return decoder("Qwen3Moe", **{"head_dim": 6, "moe_intermediate_size": 12, "num_experts": 6, "num_experts_per_tok": 3, "mlp_only_layers": [0], **changes})


def gpt_oss(**changes):
    return decoder("GptOss", **{"head_dim": 6, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 5, **changes})


def lora(make, **changes):
    """A model with adapters of peft, which write() adds to the model that it has saved."""
    return lambda: (make(), LoraConfig(task_type="CAUSAL_LM", **{"r": 4, "lora_alpha": 6, "lora_dropout": 0.0, "target_modules": "all-linear", **changes}))


def gpt2(**changes):
    sizes = dict(vocab_size=64, n_embd=16, n_layer=2, n_head=4, n_positions=32, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                 bos_token_id=0, eos_token_id=1)
    return GPT2LMHeadModel(GPT2Config(**{**sizes, **changes}))


def vit(**changes):
    sizes = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, image_size=12, patch_size=4, num_labels=7)
    return ViTForImageClassification(ViTConfig(**{**sizes, **changes}))


RECORDED = {
    "llama": lambda: llama(rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 500.0}),
    "llama-tied": lambda: llama(tie_word_embeddings=True, attention_bias=True, mlp_bias=True, head_dim=6, num_key_value_heads=1,
                                rope_parameters={**LLAMA3, "rope_theta": 10000.0}),
    "gpt2": lambda: gpt2(n_inner=40),
    "vit": lambda: vit(layer_norm_eps=1e-6),
    "vit-resized": lambda: vit(qkv_bias=False, hidden_size=12, num_attention_heads=3),
}
DECODERS = {
    "qwen2": lambda: qwen2(tie_word_embeddings=True, use_sliding_window=True, sliding_window=5, max_window_layers=1),
    "qwen3": lambda: qwen3(rope_parameters=YARN),
    "mistral": lambda: mistral(),
    "olmo2": lambda: olmo2(num_attention_heads=2, num_key_value_heads=1),
    "phi3": lambda: phi3(rope_parameters=LONGROPE, original_max_position_embeddings=16, sliding_window=7),
    "gemma2": lambda: gemma2(),
    "gemma3": lambda: gemma3(),
    "mixtral": lambda: mixtral(),
    "qwen3-moe": lambda: qwen3_moe(norm_topk_prob=True),
    "gpt-oss": lambda: gpt_oss(),
}
# The loss that keeps experts balanced is part of the loss.
AUXILIARY = {
    "mixtral-aux": lambda: mixtral(output_router_logits=True, router_aux_loss_coef=0.3),
    "qwen3-moe-aux": lambda: qwen3_moe(output_router_logits=True, router_aux_loss_coef=0.2, decoder_sparse_step=1, mlp_only_layers=[], num_hidden_layers=3),
    "gpt-oss-aux": lambda: gpt_oss(output_router_logits=True, router_aux_loss_coef=0.9),
}
# Rows of several documents, padding-free: transformers tells them by position_ids, which begin anew at each.
PACKED = {f"{name}-packed": {**RECORDED, **DECODERS}[name] for name in ("gpt2", "llama", *DECODERS)}
VARIATIONS = {
    **RECORDED,
    "llama-1-layer": lambda: llama(num_hidden_layers=1),
    "llama-5-layers": lambda: llama(num_hidden_layers=5),
    "llama-mha": lambda: llama(num_key_value_heads=4),
    "llama-mqa": lambda: llama(num_key_value_heads=1),
    "llama-gqa-3": lambda: llama(hidden_size=36, num_attention_heads=6, num_key_value_heads=2),
    "llama-head-dim-32": lambda: llama(head_dim=32),
    "llama-tied-plain": lambda: llama(tie_word_embeddings=True),
    "llama-attention-bias": lambda: llama(attention_bias=True),
    "llama-mlp-bias": lambda: llama(mlp_bias=True),
    "llama-rope-linear": lambda: llama(rope_parameters={"rope_type": "linear", "factor": 2.5, "rope_theta": 1e4}),
    "llama-rope-dynamic": lambda: llama(rope_parameters={"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4}),
    "llama-rope-llama3": lambda: llama(rope_parameters={**LLAMA3, "rope_theta": 5e5}),
    "llama-wide": lambda: llama(hidden_size=128, intermediate_size=352, vocab_size=256, num_attention_heads=8),
    "llama-tied-bytes": lambda: llama(vocab_size=256, tie_word_embeddings=True, attention_bias=True, mlp_bias=True, head_dim=6,
                                      rope_parameters={**LLAMA3, "rope_theta": 10000.0}),
    "gpt2-plain": lambda: gpt2(),
    "gpt2-1-layer": lambda: gpt2(n_layer=1),
    "gpt2-epsilon": lambda: gpt2(layer_norm_epsilon=1e-3),
    "gpt2-wide": lambda: gpt2(n_embd=128, vocab_size=256, n_head=2),
    "vit-plain": lambda: vit(),
    "vit-1-layer": lambda: vit(num_hidden_layers=1),
    "vit-5-layers": lambda: vit(num_hidden_layers=5),
    "vit-1-head": lambda: vit(num_attention_heads=1),
    "vit-no-bias": lambda: vit(qkv_bias=False),
    "vit-2-labels": lambda: vit(num_labels=2),
    "vit-patch-2": lambda: vit(patch_size=2),
    "vit-one-patch": lambda: vit(image_size=4),
    "vit-smaller": lambda: vit(image_size=20),
    "vit-wide": lambda: vit(hidden_size=128, intermediate_size=352, num_attention_heads=8, image_size=32, patch_size=8),
    **DECODERS,
    **AUXILIARY,
    "mixtral-one": lambda: mixtral(num_experts_per_tok=1, tie_word_embeddings=True),
    "mixtral-all": lambda: mixtral(num_experts_per_tok=4, sliding_window=5),
    "mixtral-many": lambda: mixtral(num_local_experts=40),  # more than tokens choose
    "mixtral-wide": lambda: mixtral(hidden_size=128, intermediate_size=160, vocab_size=256, num_attention_heads=8),
    "qwen3-moe-sums": lambda: qwen3_moe(norm_topk_prob=False, attention_bias=True),
    "qwen3-moe-window": lambda: qwen3_moe(use_sliding_window=True, sliding_window=4, decoder_sparse_step=2, mlp_only_layers=[], num_hidden_layers=4),
    "qwen3-moe-wide": lambda: qwen3_moe(hidden_size=128, intermediate_size=352, moe_intermediate_size=48, vocab_size=256, num_attention_heads=8, head_dim=32, norm_topk_prob=True),
    "gpt-oss-limit": lambda: gpt_oss(swiglu_limit=0.5, swiglu_alpha=1.3),
    "gpt-oss-no-bias": lambda: gpt_oss(attention_bias=False, num_experts_per_tok=4, layer_types=["full_attention", "sliding_attention"]),
    "gpt-oss-rope": lambda: gpt_oss(rope_parameters={"rope_type": "default", "rope_theta": 1e4}, tie_word_embeddings=True),
    "gpt-oss-wide": lambda: gpt_oss(hidden_size=128, intermediate_size=96, vocab_size=256, num_attention_heads=8, head_dim=32),
    "llama-rope-yarn": lambda: llama(rope_parameters=YARN),
    "llama-rope-yarn-betas": lambda: llama(head_dim=12, rope_parameters={**YARN, "beta_fast": 8.0, "beta_slow": 2.0, "mscale": 0.7,
                                                                         "mscale_all_dim": 0.9, "truncate": False}),
    "llama-rope-longrope": lambda: llama(rope_parameters={**LONGROPE, "original_max_position_embeddings": 64, "factor": 2.0}),
    "llama-rope-longer": lambda: llama(rope_parameters={**LONGROPE, "original_max_position_embeddings": 8, "attention_factor": 1.25}),
    "qwen2-plain": lambda: qwen2(),
    "qwen2-layer-types": lambda: qwen2(use_sliding_window=True, sliding_window=4, layer_types=["sliding_attention", "full_attention"]),
    "qwen2-wide": lambda: qwen2(use_sliding_window=True, sliding_window=5, max_window_layers=1, hidden_size=128, intermediate_size=352, vocab_size=256, num_attention_heads=8),
    "qwen3-plain": lambda: qwen3(),
    "qwen3-bias": lambda: qwen3(attention_bias=True, tie_word_embeddings=True),
    "qwen3-window": lambda: qwen3(use_sliding_window=True, sliding_window=3, max_window_layers=1),
    "qwen3-wide": lambda: qwen3(hidden_size=128, intermediate_size=352, vocab_size=256, num_attention_heads=8, head_dim=32, rope_parameters=YARN),
    "mistral-no-window": lambda: mistral(sliding_window=None),
    "mistral-window-2": lambda: mistral(sliding_window=2),
    "mistral-head-dim": lambda: mistral(head_dim=10, tie_word_embeddings=True),
    "mistral-wide": lambda: mistral(hidden_size=128, intermediate_size=352, vocab_size=256, num_attention_heads=8),
    "olmo2-bias": lambda: olmo2(attention_bias=True, tie_word_embeddings=True),
    "olmo2-wide": lambda: olmo2(hidden_size=128, intermediate_size=352, vocab_size=256, num_attention_heads=8),
    "phi3-plain": lambda: phi3(),
    "phi3-mha": lambda: phi3(num_key_value_heads=4, sliding_window=3),
    "phi3-part": lambda: phi3(hidden_size=32, tie_word_embeddings=True,
                              rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.75}),
    "phi3-short": lambda: phi3(rope_parameters=LONGROPE, original_max_position_embeddings=32),
    "phi3-wide": lambda: phi3(hidden_size=128, intermediate_size=352, vocab_size=256, num_attention_heads=8, original_max_position_embeddings=8,
                              rope_parameters={**LONGROPE, "short_factor": [1.0] * 8, "long_factor": [1.0, 1.5] * 4}),
    "gemma2-no-caps": lambda: gemma2(attn_logit_softcapping=None, final_logit_softcapping=None),
    "gemma2-scale": lambda: gemma2(query_pre_attn_scalar=6, attention_bias=True),
    "gemma2-untied": lambda: gemma2(tie_word_embeddings=False, layer_types=["full_attention", "sliding_attention"]),
    "gemma2-wide": lambda: gemma2(hidden_size=128, intermediate_size=352, vocab_size=256, num_attention_heads=8, head_dim=32),
    "gemma3-pattern": lambda: gemma3(layer_types=None, num_hidden_layers=6),
    "gemma3-rope": lambda: gemma3(final_logit_softcapping=4.0, rope_parameters=LINEAR_BEYOND),
    "gemma3-wide": lambda: gemma3(rope_parameters=LINEAR_BEYOND, hidden_size=128, intermediate_size=352, vocab_size=256, num_attention_heads=8, head_dim=32),
    **PACKED,
}
RECORDED |= DECODERS | AUXILIARY | {name: PACKED[name] for name in ("gpt2-packed", "qwen3-packed", "gemma3-packed")}
LORA = {
    "llama-lora": lora(llama, target_modules=["q_proj", "v_proj", "mlp.down_proj"]),
    "gpt2-lora": lora(gpt2, use_rslora=True),
    "phi3-lora": lora(phi3, modules_to_save=["lm_head", "norm"]),
    "qwen2-lora": lora(lambda: qwen2(vocab_size=256), r=1, lora_alpha=32),
    "qwen3-lora": lora(lambda: qwen3(vocab_size=256, tie_word_embeddings=True), lora_alpha=1),
    "mistral-lora": lora(lambda: mistral(vocab_size=256), target_modules=["o_proj", "gate_proj"]),
    "olmo2-lora": lora(lambda: olmo2(vocab_size=256)),
    "gemma2-lora": lora(lambda: gemma2(vocab_size=256)),
    "gemma3-lora": lora(lambda: gemma3(vocab_size=256), target_modules=["k_proj", "up_proj"]),
    "gpt2-lora-fc": lora(lambda: gpt2(vocab_size=256), target_modules=["c_fc"], r=7),
    "mixtral-lora": lora(lambda: mixtral(vocab_size=256), target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]),  # else of experts too
    "llama-lora-all": lora(lambda: llama(vocab_size=256, attention_bias=True)),
    "phi3-lora-all": lora(lambda: phi3(vocab_size=256), modules_to_save=["lm_head"]),
}
VARIATIONS |= LORA
RECORDED |= {name: LORA[name] for name in ("llama-lora", "gpt2-lora", "phi3-lora")}
# Where five steps would learn the batch by heart: of a loss near 0 few digits are left (transformers' own float32 is then 3e-6
# from float64), and 1e-6 of it is no measure.
LEARNING_RATES = {"vit-wide": 1e-4}
# Images of another size than the model's: positions are interpolated.
SIZES = {"vit-resized": 20, "vit-smaller": 8, "vit-one-patch": 12}


def takes_images(config):
    return config.model_type == "vit"


def packed(inputs, targets):
    """The same tokens as documents of 1 to 7 in a row; the last token of a document has no target."""
    positions = torch.tensor([[*range(5), *range(7)], [*range(4), 0, *range(2), *range(5)]])
    targets = targets.clone()
    targets[:, -1] = -100
    targets[:, :-1][positions[:, 1:] == 0] = -100
    return {**inputs, "position_ids": positions, "use_cache": False}, targets


def batch(config, size=None):
    """What a model reads, by the name that its forward has for it, and its targets."""
    if takes_images(config):
        size = size or config.image_size
        return {"pixel_values": torch.randn(B, 3, size, size)}, torch.randint(0, config.num_labels, (B,))
    tokens = torch.randint(0, config.vocab_size, (B, T + 1))
    return {"input_ids": tokens[:, :-1].contiguous()}, tokens[:, 1:].contiguous()


def loss_of(logits, targets):
    return torch.nn.functional.cross_entropy(logits.float().flatten(0, -2), targets.flatten())


def load(folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    auto = AutoModelForImageClassification if takes_images(config) else AutoModelForCausalLM
    # The attention that it would choose leaves out Gemma 2's cap of the scores.
    eager = config.model_type == "gemma2" or Path(folder).name.endswith("-packed")
    plain = {"experts_implementation": "eager"} if hasattr(config, "num_experts_per_tok") else {}  # float64 has no other
    return auto.from_pretrained(folder, dtype=torch.float32, **({"attn_implementation": "eager"} if eager else {}), **plain)


def computed(model, inputs):
    resize = {"interpolate_pos_encoding": True} if takes_images(model.config) else {}
    return model(**inputs, **resize)


def forward(model, inputs):
    return computed(model, inputs).logits


def in_float64(folder, inputs):
    """The logits in float64, rounded once: transformers' own norms and softmax ask for torch.float32 by name. Rotary angles stay float32."""
    model = load(folder).double().eval()
    with torch.no_grad(), mock.patch.object(torch, "float32", torch.float64):
        return forward(model, {name: value.double() if name == "pixel_values" else value for name, value in inputs.items()}).float()


def in_files(name, tensor, config):
    """A parameter's tensors, as files have them: experts are stacked in memory, in files most are one by one."""
    its_name = name_in_file(name, config)
    words = {"mixtral": ("w1", "w3", "w2"), "qwen3_moe": ("gate_proj", "up_proj", "down_proj")}.get(config.model_type)
    if not words or ".experts." not in its_name:
        yield its_name, tensor
        return
    module, _, part = its_name.rpartition(".")
    for number, its in enumerate(tensor):
        for word, matrix in zip(words[:2], its.chunk(2)) if part == "gate_up_proj" else [(words[2], its)]:
            yield f"{module}.{number}.{word}.weight", matrix.clone()


def name_in_file(name, config):
    """Of a parameter: transformers 5 has other names for those of a ViT and of Mixtral than the files that it writes and reads."""
    if config.model_type == "mixtral":
        return name.replace(".mlp.", ".block_sparse_moe.")
    if not name.startswith("vit.layers."):
        return name
    for new, old in (("vit.layers.", "vit.encoder.layer."), ("attention.q_proj", "attention.attention.query"),
                     ("attention.k_proj", "attention.attention.key"), ("attention.v_proj", "attention.attention.value"),
                     ("attention.o_proj", "attention.output.dense"), ("mlp.fc1", "intermediate.dense"), ("mlp.fc2", "output.dense")):
        name = name.replace(new, old)
    return name


def name_without_peft(name):
    """Of a parameter of a PeftModel, as the files of adapters have it."""
    return name.removeprefix("base_model.model.").replace(".default", "").replace(".modules_to_save", "")


def write(folder, make, seed, sharded=False, exact=False):
    torch.manual_seed(seed)
    made = make()
    model, config = made if isinstance(made, tuple) else (made, None)
    model.train()
    std = 1.2 / model.config.hidden_size**0.5  # every part matters, and nothing grows from layer to layer
    one = 0 if model.config.model_type.startswith("gemma") else 1  # that Gemma adds to a norm's weights
    with torch.no_grad():  # weights that 16 bits hold exactly
        for name, p in model.named_parameters():
            p.copy_((torch.randn_like(p) * std + (one if "norm" in name or ".ln_" in name and "weight" in name else 0)).bfloat16().float())
    model.to(torch.bfloat16).save_pretrained(folder, **({"max_shard_size": "10KB"} if sharded else {}))
    learning_rate = LEARNING_RATES.get(Path(folder).name, LEARNING_RATE)
    model = load(folder).train()  # .to() rounded the rotary frequencies too
    if config:
        model = get_peft_model(model, config)
        with torch.no_grad():
            for name, p in model.named_parameters():
                if "lora_B" in name:  # it begins as zeros, under which lora_A has no gradient
                    p.copy_(torch.randn_like(p) * std)
                elif p.requires_grad and "lora_" not in name:
                    p.add_(torch.randn_like(p) * 0.01)
        model.save_pretrained(folder)
    inputs, targets = batch(model.config, SIZES.get(Path(folder).name))
    if Path(folder).name.endswith("-packed"):
        inputs, targets = packed(inputs, targets)
    expected = {"inputs": next(iter(inputs.values())), "targets": targets, "learning_rate": torch.tensor([learning_rate], dtype=torch.float64)}
    if "position_ids" in inputs:
        expected["positions"] = inputs["position_ids"]
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=learning_rate, weight_decay=0.01)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        made = computed(model, inputs)
        logits = made.logits
        loss = loss_of(logits, targets)
        if getattr(model.config, "output_router_logits", False):
            loss = loss + model.config.router_aux_loss_coef * made.aux_loss
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            expected["logits"] = logits.detach().clone()
            for name, p in model.named_parameters():
                if p.requires_grad:
                    for its, gradient in in_files(name_without_peft(name), p.grad, model.config):
                        expected["gradient." + its] = gradient.clone()
        optimizer.step()
    expected["losses"] = torch.tensor(losses)
    if exact and not config:
        expected["logits64"] = in_float64(folder, inputs)
    save_file({name: tensor.contiguous() for name, tensor in expected.items()}, str(Path(folder) / "expected.safetensors"))


def old_names(folder):
    """As transformers 4 wrote it: rope_theta and rope_scaling; and as the hub's oldest folders are: no prefix, torch.save."""
    config = json.loads((folder / "config.json").read_text())
    if rope := config.pop("rope_parameters", None):
        config["rope_theta"] = rope.pop("rope_theta")
        config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    config["torch_dtype"] = config.pop("dtype")
    if config["model_type"] == "qwen3_moe":
        config["num_experts"] = config.pop("num_local_experts")
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").unlink(missing_ok=True)


def to_torch_save(folder):
    from safetensors.torch import load_file
    weights = load_file(folder / "model.safetensors")
    torch.save({k.removeprefix("transformer."): v for k, v in weights.items()}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def portable(path):
    """adapter_config.json without the place where the model lay."""
    if path.exists():
        path.write_text(json.dumps({**json.loads(path.read_text()), "base_model_name_or_path": path.parent.name}, indent=2) + "\n")


def logits_of(folder, adapters=None):
    model = load(folder).eval()
    if adapters:
        model = PeftModel.from_pretrained(model, adapters).eval()
    torch.manual_seed(7)  # behind peft, which draws initial values
    with torch.no_grad():
        return forward(model, batch(model.config)[0])


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if sys.argv[1] == "same":
        if not torch.equal(logits_of(sys.argv[2]), logits_of(sys.argv[3])):
            sys.exit(f"{sys.argv[2]} and {sys.argv[3]} give other logits")
        return
    if sys.argv[1] == "adapters":
        own = logits_of(sys.argv[2])
        a, b = (logits_of(sys.argv[2], folder) for folder in sys.argv[3:])
        if not torch.equal(a, b):
            sys.exit(f"{sys.argv[3]} and {sys.argv[4]} give other logits")
        if torch.equal(a, own):
            sys.exit(f"{sys.argv[3]} changes nothing")
        return
    if sys.argv[1] == "merged":
        a, b = logits_of(sys.argv[2], sys.argv[3]), logits_of(sys.argv[4])
        apart = ((a - b).abs().max() / a.abs().max()).item()
        print(f"merged: {apart:.2g} of the largest logit apart")
        sys.exit(not apart < 2e-6)
    root = Path(sys.argv[2])
    recording = sys.argv[1] == "record"
    for seed, (name, make) in enumerate((RECORDED if recording else VARIATIONS).items()):
        write(root / name, make, seed, exact=not recording)
        if recording:
            for file in ("generation_config.json", "README.md"):
                (root / name / file).unlink(missing_ok=True)
            portable(root / name / "adapter_config.json")
    if not recording:
        for name in ("llama", "llama-rope-llama3", "llama-rope-yarn", "qwen2", "qwen3-window", "mistral", "olmo2", "phi3", "gemma2", "mixtral-aux", "qwen3-moe",
                     "gpt-oss", "gpt2"):
            write(root / f"{name}-old", VARIATIONS[name], 99)
            old_names(root / f"{name}-old")
        to_torch_save(root / "gpt2-old")
        torch.manual_seed(97)  # a model without a classifier, as those of in21k are
        vit_model = ViTModel(ViTConfig(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, image_size=12, patch_size=4))
        vit_model.save_pretrained(root / "vit-without-head")
        write(root / "llama-sharded", VARIATIONS["llama-wide"], 98, sharded=True)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")


main()
