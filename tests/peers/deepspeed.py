# SPDX-License-Identifier: Apache-2.0
"""Configurations for DeepSpeed, and what the package itself takes from each, as JSON Lines: {"file": ..., "taken": ...},
or {"file": ..., "refused": "TypeError"} where it ends with an error. zs takes the same values, or refuses the file.

Usage: deepspeed.py COUNT. The configuration is DeepSpeed's own parse; optimizer and schedule are the classes that it
calls, built with the parameters of the file (of its fused and CPU Adam the signature and its defaults).
"""
import inspect
import json
import logging
import os
import random
import sys

os.environ.setdefault("DS_ACCELERATOR", "cpu")
logging.disable(logging.CRITICAL)
import torch
from deepspeed.ops.adam import DeepSpeedCPUAdam, FusedAdam
from deepspeed.runtime import lr_schedules
from deepspeed.runtime.config import DeepSpeedConfig

BASE = 0.001  # zs's own learning rate: that of the client


def name(device):
    return str(getattr(device, "value", device))


def optimizer(config):
    """What the parameters of Adam come to, by the rule of engine.py's _configure_basic_optimizer."""
    if config.optimizer_name is None:
        return None
    if config.optimizer_name not in ("adam", "adamw"):
        raise ValueError(config.optimizer_name)
    params = dict(config.optimizer_params or {})
    if "max_grad_norm" in params:
        raise ValueError("max_grad_norm")
    mode = params.pop("adam_w_mode", True) or config.optimizer_name == "adamw"
    host = config.zero_config.offload_optimizer
    host = host is not None and name(host.device) != "none"
    if params.pop("torch_adam", False):
        params.pop("fp32_optimizer_states", None)
        foreach = params.pop("foreach", None)
        made = (torch.optim.AdamW if mode else torch.optim.Adam)([torch.zeros(1, requires_grad=True)], foreach=foreach, **params)
        group = made.param_groups[0]
        return {"lr": group["lr"], "betas": list(group["betas"]), "eps": group["eps"], "weight_decay": group["weight_decay"], "torch": True, "adamw": mode}
    params.pop("fp32_optimizer_states", None)
    signature = inspect.signature((DeepSpeedCPUAdam if host else FusedAdam).__init__)
    bound = signature.bind(None, [], **params, **({"adamw_mode": mode, "fp32_optimizer_states": True} if host else {"adam_w_mode": mode}))
    bound.apply_defaults()
    its = bound.arguments
    if its["amsgrad"]:
        raise RuntimeError("amsgrad")
    return {"lr": its["lr"], "betas": list(its["betas"]), "eps": its["eps"], "weight_decay": its["weight_decay"], "torch": False, "adamw": mode}


def schedule(config, rate):
    if config.scheduler_name is None:
        return None
    made = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=rate)
    its = getattr(lr_schedules, config.scheduler_name)(made, **config.scheduler_params)
    told = {"type": config.scheduler_name, "warmup_num_steps": its.warmup_num_steps, "warmup_type": its.warmup_type}
    if config.scheduler_name == "WarmupCosineLR":
        told |= {"warmup_min_ratio": its.warmup_min_ratio, "cos_min_ratio": its.cos_min_ratio, "total_num_steps": its.total_num_steps}
    else:
        told |= {"warmup_min_lr": its.min_lrs[0], "max_lr": its.max_lrs[0]}
    if config.scheduler_name == "WarmupDecayLR":
        told["total_num_steps"] = its.total_num_steps
    return told


def taken(file):
    config = DeepSpeedConfig(json.loads(json.dumps(file)))
    zero = config.zero_config
    adam = optimizer(config)
    fp16 = config.float16_config
    result = {
        "train_batch_size": config.train_batch_size,
        "micro_batch": config.train_micro_batch_size_per_gpu,
        "accumulation": config.gradient_accumulation_steps,
        "gradient_clipping": config.gradient_clipping,
        "stage": int(zero.stage),
        "offload_optimizer": "none" if zero.offload_optimizer is None else name(zero.offload_optimizer.device),
        "offload_param": "none" if zero.offload_param is None else name(zero.offload_param.device),
        "dtype": "float16" if fp16.enabled else "bfloat16" if config.bfloat16_config.enabled else "float32",
        "optimizer": adam,
        "scheduler": schedule(config, adam["lr"] if adam else BASE),
    }
    if fp16.enabled:
        result["fp16"] = {"loss_scale": fp16.loss_scale, "hysteresis": fp16.hysteresis}
        if not fp16.loss_scale:
            result["fp16"] |= {"initial_scale_power": fp16.initial_scale_power, "loss_scale_window": fp16.loss_scale_window, "min_loss_scale": fp16.min_loss_scale, "consecutive_hysteresis": fp16.consecutive_hysteresis}
    return result


def drawn(dice):
    """A file that somebody may have: mostly right, with sections that are missing, null, off, or another's."""
    some = lambda chance: dice.random() < chance
    pick = lambda *values: dice.choice(values)
    file = {}
    micro, steps = pick(1, 2, 4), pick(1, 2, 8)
    if some(0.7):
        file["train_micro_batch_size_per_gpu"] = micro
    if some(0.5):
        file["gradient_accumulation_steps"] = steps
    if "train_micro_batch_size_per_gpu" not in file or some(0.2):
        file["train_batch_size"] = pick(micro * steps, 8, 16)
    if some(0.5):
        file["gradient_clipping"] = pick(0.0, 0.5, 1.0, 2)
    if some(0.8):
        params = {}
        if some(0.8):
            params["lr"] = pick(1e-4, 0.002, 3e-5)
        if some(0.4):
            params["betas"] = pick([0.9, 0.95], [0.8, 0.999])
        if some(0.4):
            params["eps"] = pick(1e-8, 1e-6)
        if some(0.4):
            params["weight_decay"] = pick(0, 0.1, 3e-7)
        for key, values, chance in (("torch_adam", (True, False), 0.3), ("adam_w_mode", (True, False), 0.15), ("bias_correction", (True,), 0.1),
                                    ("amsgrad", (False,), 0.1), ("foreach", (True, False), 0.1), ("fused", (False,), 0.05), ("set_grad_none", (True,), 0.05), ("momentum", (0.9,), 0.05), ("max_grad_norm", (1.0,), 0.05)):
            if some(chance):
                params[key] = pick(*values)
        section = {"type": pick("Adam", "AdamW", "adam", "adamw", "AdamW")}
        if some(0.9):
            section["params"] = params
        if some(0.15):
            del section["type"]
        file["optimizer"] = section if some(0.97) else pick(None, {})
    if some(0.6):
        kind = pick("WarmupLR", "WarmupDecayLR", "WarmupCosineLR")
        params = {}
        for key, values, chance in (("warmup_min_lr", (0, 1e-6), 0.3), ("warmup_max_lr", (0.001, 0.01, None), 0.4), ("warmup_num_steps", (10, 100, 1, 0), 0.7), ("warmup_type", ("log", "linear"), 0.5),
                                    ("total_num_steps", (100, 1000), 0.6), ("warmup_min_ratio", (0.0, 0.1), 0.15), ("cos_min_ratio", (0.01, 0.1), 0.15), ("last_batch_iteration", (-1,), 0.05)):
            foreign = key in ("warmup_min_lr", "warmup_max_lr") and kind == "WarmupCosineLR" or key.endswith("_ratio") and kind != "WarmupCosineLR" or key == "total_num_steps" and kind == "WarmupLR"
            if some(chance * (0.2 if foreign else 1.2)):
                params[key] = pick(*values)
        section = {"type": kind, "params": params}
        if some(0.12):
            del section["type"]
        file["scheduler"] = section if some(0.98) else None
    if some(0.4):
        fp16 = {}
        if some(0.8):
            fp16["enabled"] = pick(True, True, False)
        for key, values in (("loss_scale", (0, 128)), ("initial_scale_power", (12, 20)), ("loss_scale_window", (500,)), ("hysteresis", (1, 4)), ("consecutive_hysteresis", (True, False)), ("min_loss_scale", (1, 2))):
            if some(0.4):
                fp16[key] = pick(*values)
        file["fp16"] = fp16 if some(0.96) else pick(None, True)
    if some(0.3):
        file["bf16"] = pick({"enabled": True}, {"enabled": False}, {}, None) if "fp16" not in file or some(0.2) else {"enabled": False}
    if some(0.8):
        zero = {"stage": pick(0, 1, 2, 3)} if some(0.9) else {}
        for name in ("offload_optimizer", "offload_param"):
            if some(0.35):
                device = pick("none", "cpu", "nvme", "cpu")
                section = {"device": device} if some(0.9) else {}
                if device == "nvme" or some(0.2):
                    section["nvme_path"] = "/local_nvme"
                zero[name] = section if some(0.85) else None
        file["zero_optimization"] = zero if some(0.97) else None
    return file


def main():
    dice = random.Random(2311)
    fixed = [{}, {"optimizer": None}, {"scheduler": None}, {"fp16": None}, {"bf16": None}, {"zero_optimization": None}, {"fp16": True}, {"zero_optimization": True}, {"fp16": {"enabled": False, "loss_scale": 128}},
             {"optimizer": {"params": {"lr": 0.5}}}, {"optimizer": {"type": None, "params": {"lr": 0.5}}}, {"scheduler": {"params": {"warmup_num_steps": 7}}}, {"optimizer": {"type": "Adam", "params": {"torch_adam": True}}}]
    files = [{"train_micro_batch_size_per_gpu": 1} | one for one in fixed]
    while len(files) < int(sys.argv[1]):
        files.append(drawn(dice))
    for file in files:
        line = {"file": file}
        try:
            line["taken"] = taken(file)
        except Exception as error:  # noqa: BLE001 whatever it ends with
            line["refused"] = f"{type(error).__name__}: {error}"[:90]
        print(json.dumps(line))


main()
