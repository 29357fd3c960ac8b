# SPDX-License-Identifier: Apache-2.0
"""draw.py SEED FAULTS HEALTHY [alone]: pairs of trainings of train.py, drawn at random, in the form of `cases`: faults of all kinds at a random
step, place, size, type, number of ranks and layout, which no comparison may call equal (`apart`), and healthy pairs (`equal`). alone: of these the faults that one recording decides
(`inconsistent`), and healthy recordings (`consistent`), each without a reference."""
import json
import random
import sys

TORCH = ("plain", "ddp", "fsdp1", "fsdp2", "hsdp", "tp")
ZERO = ("zero0", "zero1", "zero2", "zero3")
LOOPS = ("accelerate", "trainer")
EVERY = TORCH + ZERO + LOOPS
SIZES = (1.01, 1.04, 0.9, 1.25, 0.5, 2, 3)
LARGE = (0.5, 2, 3)  # beyond any rounding, also between layouts and in bfloat16


def text(settings):
    return " ".join(f"{key}={json.dumps(value, separators=(',', ':'))}" for key, value in sorted(settings.items()))


def family(r):
    """What layouts must not change; other trainings are other families."""
    o = {"attention": r.choice(("", "", "fused", "separate")), "clip": r.choice((0.0, 0.0, 0.1, 0.3)), "tied": r.random() < 0.6, "decay": r.choice((0.1, 0.1, 0.0))}
    kind = r.random()
    if kind < 0.2:
        o |= {"optimizer": "sgd", "rate": 0.05}
        if r.random() < 0.3:
            o["options"] = {"nesterov": True}
    elif kind < 0.3:
        o["options"] = {"amsgrad": True}
    if r.random() < 0.3:
        o["precision"] = "bfloat16"
    special = r.random()
    if special < 0.08:
        o["dropout"] = 0.1
    elif special < 0.16:
        o["bn"] = 0.1
    elif special < 0.22:
        o["experts"], o["attention"] = 3, ""
    elif special < 0.28:
        o |= {"second": 0.02, "tied": True}
    elif special < 0.36:
        o["frozen"] = True
    return {key: value for key, value in o.items() if value != ""}


def bound(o):
    """Whether other ranks and micro-batches make another training of it: by random numbers, or statistics of a batch."""
    return "dropout" in o or "bn" in o


def layouts_of(o):
    found = list(TORCH)
    if "experts" in o:
        return ["plain", "ddp", "tp"]
    if "second" in o:
        return ["plain", "ddp"]
    if "bn" in o or "dropout" in o:
        return ["plain", "ddp", "accelerate"]
    found += ZERO
    if o.get("frozen"):
        found.remove("fsdp1")
    if o.get("precision") != "bfloat16":
        found += ["trainer"]
    else:
        found.remove("zero0")  # whose FP16_UnfusedOptimizer makes its state by a step of the optimizer: Adam counts 2 after the first
    if o.get("options", {}).get("amsgrad"):
        found = [layout for layout in found if not layout.startswith("zero")]
    return found + ["accelerate"]


class Pool:
    """So many families, each of which is trained in a layout once or twice: references are shared."""

    def __init__(self, r, size):
        self.r, self.families, self.made = r, [family(r) for _ in range(size)], {}

    def family(self):
        return self.r.choice(self.families)

    def laid(self, o, layout, accumulates=False):
        key = text(o), layout, accumulates
        if key not in self.made:
            self.made[key] = laid(self.r, o, layout, accumulates)
        return dict(self.made[key])


def laid(r, o, layout, accumulates):
    """A training of the family in that layout."""
    ranks = {"plain": 1, "hsdp": 4, "tp": 2}.get(layout) or r.choice((2, 2, 2, 4) if layout not in LOOPS else (1, 2, 2))
    shares = 1 if layout == "tp" else ranks
    accumulation = r.choice([n for n in (1, 2, 4) if n * shares <= 8 and (n > 1 or not accumulates)])
    made = {**o, "layout": layout, "ranks": ranks, "accumulation": accumulation}
    if layout in ("plain", "ddp") and o.get("precision") != "bfloat16" and "compiled" not in o and r.random() < 0.3:
        made["options"] = {**o.get("options", {}), r.choice(("fused", "foreach")): True}
        if "fused" in made["options"]:
            made["options"]["foreach"] = None
    elif layout in ("fsdp2", "ddp", "plain") and not bound(o) and r.random() < 0.25:
        made["checkpointed"] = True
    elif layout in ("plain", "ddp") and not bound(o) and r.random() < 0.3:
        made["compiled"] = "aot_eager"
    elif layout in ("zero2", "zero3") and r.random() < 0.2:
        made["offload"] = True
    elif layout in ("zero1", "zero2") and r.random() < 0.2:
        made["robin"] = True
    return made


def adam(o):
    return o.get("optimizer") != "sgd"


def faults(r):
    """By kind: (layouts, whether the family suits, the settings of the fault, whether small sizes are told between layouts)."""
    name = r.choice(("up.weight", "down.weight", "blocks.1.up.bias", "norm.weight", ""))
    at, late, micro = r.choice((1, 2, 3)), r.choice((2, 3)), {"micro": 0}
    whole = ("plain", "ddp")
    kinds = {
        "scaled gradient": (TORCH + ("accelerate",) + ZERO, None, {"fault": "scale", "size": None, "tensor": name, "at": at}),
        "sign of a gradient": (TORCH + ZERO, None, {"fault": "sign", "tensor": name, "at": at}),
        "zeroed gradient": (TORCH + ("accelerate",), None, {"fault": "zeroed", "tensor": "blocks.1.up", "at": at}),
        "swapped gradients": (TORCH, None, {"fault": "swapped", "tensor": "up.weight", "at": at}),
        "a slice of a gradient": (TORCH, None, {"fault": "part_scaled", "size": None, "tensor": "blocks.1.down.weight", "at": at}),
        "one element of a gradient": (whole, None, {"fault": "element", "size": r.choice((1.5, 3)), "tensor": "blocks.1.up.weight", "at": at}),
        "noise on a gradient": (whole, None, {"fault": "noise", "size": r.choice((0.01, 0.1)), "tensor": "blocks.0.up.weight", "at": at}),
        "a gradient of the step before": (TORCH, None, {"fault": "delayed", "at": late}),
        "a gradient that is not finite": (("plain", "ddp", "fsdp2"), None, {"fault": "not_finite", "tensor": "up.weight", "at": at}),
        "gradients in bfloat16": (("plain", "ddp", "fsdp2"), None, {"fault": "half_gradient", "at": at}),
        "a lost micro-batch": (whole + ZERO, "accumulates", {"fault": "lost_micro", "at": at, **micro}),
        "a micro-batch twice": (TORCH[:4] + ZERO, "accumulates", {"fault": "twice_micro", "at": at, "size": 2, **micro}),
        "a micro-batch that counts more": (TORCH + ZERO, "accumulates", {"fault": "weighed", "at": at, "size": r.choice((1.1, 1.5)), "micro": 1}),
        "no division by micro-batches": (TORCH[:5] + ZERO, "accumulates", {"fault": "undivided", "at": at}),
        "a rank that is lost": (ZERO, None, {"fault": "lost_rank", "rank": 1, "at": at}),
        "a rank that counts twice": (ZERO, None, {"fault": "doubled_rank", "rank": 1, "at": at}),
        "gradients that are not reduced": (("ddp",), None, {"fault": "unreduced", "at": at}),
        "gradients that are not set to zero": (TORCH[:4], "unclipped", {"fault": "unzeroed", "at": r.choice((1, 2))}),
        "a rank with another's samples": (("ddp", "fsdp2", "zero1", "zero2", "zero3"), None, {"fault": "same_data", "rank": 1, "at": at}),
        "samples of the step before": (TORCH + ZERO, None, {"fault": "old_batch", "at": late}),
        "another label": (EVERY, None, {"fault": "other_label", "at": at}),
        "another token": (EVERY, None, {"fault": "other_token", "at": at}),
        "a sample twice": (EVERY, None, {"fault": "sample_twice", "at": at}),
        "another rate": (EVERY, None, {"fault": "rate", "size": r.choice((0.5, 0.99, 1.001, 1.1))}),
        "another rate of a group": (EVERY, adam, {"fault": "rate_group", "size": r.choice((0.25, 0.9))}),
        "another weight decay": (EVERY, lambda o: o["decay"] > 0, {"decay": r.choice((0.0, 0.09, 0.2))}),
        "decayed norms": (EVERY, lambda o: o["decay"] > 0, {"fault": "decay_norms"}),
        "other betas": (EVERY, adam, {"fault": "betas", "size": r.choice((0.999, 0.96))}),
        "another epsilon": (EVERY, adam, {"options": {"eps": r.choice((1e-6, 2e-8))}}),
        "amsgrad": (TORCH + LOOPS, lambda o: adam(o) and "options" not in o, {"options": {"amsgrad": True}}),
        "maximize": (TORCH, adam, {"options": {"maximize": True}}),
        "nesterov": (TORCH + LOOPS, lambda o: not adam(o) and "options" not in o, {"options": {"nesterov": True}}),
        "another momentum": (TORCH + LOOPS, lambda o: not adam(o), {"options": {"momentum": 0.8, "nesterov": False}}),
        "another optimizer": (TORCH, adam, {"fault": "sgd"}),
        "a second optimizer's rate": (whole, lambda o: "second" in o, {"second": r.choice((0.5, 0.021))}),
        "BatchNorm's momentum": (whole, lambda o: "bn" in o, {"bn": r.choice((0.5, 0.11))}),
        "dropout that ends": (whole, lambda o: "dropout" in o, {"fault": "dropout_off"}),
        "another dropout rate": (whole, lambda o: "dropout" in o, {"dropout": 0.2}),
        "a schedule that moves twice": (TORCH, None, {"fault": "schedule_twice", "at": r.choice((1, 2))}),
        "no clipping": (TORCH, lambda o: o["clip"] == 0.1, {"fault": "unclipped", "at": at}),
        "another clip bound": (EVERY, lambda o: o["clip"] == 0.1, {"clip": r.choice((0.2, 0.101))}),
        "clipping by each rank's norm": (("fsdp2",), lambda o: o["clip"] == 0.1, {"fault": "clip_local", "at": at}),
        "a parameter that stands still": (TORCH[:5], None, {"fault": "stands_still", "at": at, "tensor": "blocks.0.up.weight", "inside": r.random() < 0.5}),
        "decay twice": (TORCH[:5], lambda o: o["decay"] > 0, {"fault": "decayed_twice", "at": at, "size": 1, "tensor": "up.weight", "inside": r.random() < 0.5}),
        "parameters in bfloat16": (TORCH[:5], None, {"fault": "half_master", "at": at, "inside": r.random() < 0.5}),
        "a scaled update": (TORCH[:5] + LOOPS, None, {"fault": "update_scaled", "size": r.choice((0.5, 1.3)), "at": at, "inside": True, "tensor": name}),
        "a scaled update, afterwards": (TORCH[:5], None, {"fault": "update_scaled", "size": r.choice((0.5, 1.3)), "at": at, "tensor": name}),
        "a moved parameter": (TORCH[:4], None, {"fault": "nudged", "size": 0.001, "tensor": "words.weight", "at": at}),
        "noise on parameters": (TORCH[:4] + LOOPS, None, {"fault": "noised", "size": 0.001, "at": at, "inside": True}),
        "a row that is not updated": (whole + LOOPS, None, {"fault": "row_stuck", "tensor": "blocks.0.up.weight", "at": at, "inside": True}),
        "no decay of one parameter": (whole + LOOPS, lambda o: adam(o) and o["decay"] > 0, {"fault": "not_decayed", "tensor": "blocks.0.up.weight", "at": at, "inside": True}),
        "a scaled second moment": (whole + LOOPS, adam, {"fault": "second_scaled", "size": 1.05, "at": at, "inside": True}),
        "parameters scaled after the last step": (TORCH[:4] + LOOPS, None, {"fault": "last_scaled", "size": 2, "inside": r.random() < 0.5}),
        "a step without an update": (TORCH, None, {"fault": "no_update", "at": at}),
        "moments set to zero": (TORCH, adam, {"fault": "reset", "at": late}),
        "swapped moments": (("plain", "ddp", "fsdp2"), adam, {"fault": "moments_swapped", "tensor": "up.weight", "at": late}),
        "Adam's counter a step ahead": (whole, adam, {"fault": "clock", "at": late}),
        "stale weights": (("zero1", "zero2", "zero3"), None, {"fault": "stale_weights", "at": r.choice((1, 2)), "tensor": "blocks.1.up.weight", "rank": r.choice((0, 1))}),
        "a rate that moves": (("zero1", "zero2"), None, {"fault": "rate_moves", "at": 1, "size": 0.9}),
        "weights that are not tied": (TORCH, lambda o: o["tied"] and "second" not in o, {"fault": "untied"}),
        "a parameter in no group": (("plain", "ddp", "fsdp2"), None, {"fault": "forgotten"}),
        "a frozen layer that trains": (("plain", "ddp", "fsdp2"), lambda o: o.get("frozen"), {"fault": "unfrozen"}),
        "another activation": (TORCH + ZERO, lambda o: "experts" not in o, {"fault": "activation", "tensor": r.choice("01"), "at": at}),
        "no residual": (TORCH + ZERO, None, {"fault": "no_residual", "tensor": r.choice("01"), "at": at}),
        "outputs of another sample": (TORCH[:4] + ZERO, None, {"fault": "other_samples", "tensor": r.choice("01"), "at": at}),
        "scaled attention scores": (TORCH + ZERO, lambda o: o.get("attention"), {"fault": "scores", "tensor": r.choice("01"), "at": at}),
        "other initial weights": (EVERY, None, {"seed": 6}),
        "a step less": (EVERY, None, {"steps": 2}),
    }
    ends = {"an exception": "crash", "a status": "exit", "os._exit": "quit", "SIGKILL": "kill"}
    for words, fault in ends.items():
        layouts = ("plain", "ddp", "fsdp2", "accelerate") if fault != "exit" else ("plain",)
        how = {"fault": fault, "at": late, "rank": r.choice((-1, 0))}
        kinds[f"an end by {words}"] = (layouts, None, how)
        kinds[f"an end by {words}, on both sides"] = (layouts, None, {**how, "both": True})
    stride = r.choice((2, 3))
    for words, how in (("noise, between recorded steps", {"fault": "noised", "size": 0.001, "at": r.choice((3, 4, 5)), "inside": True}),
                       ("a moved parameter, between recorded steps", {"fault": "nudged", "size": 0.01, "tensor": "blocks.0.up.weight", "at": r.choice((3, 4, 5))}),
                       ("parameters scaled after the last step, at a stride", {"fault": "last_scaled", "size": 1.5, "inside": True}),
                       ("another label, between recorded steps", {"fault": "other_label", "at": r.choice((3, 4, 5))})):
        kinds[words] = (("plain", "ddp", "fsdp2"), None, {**how, "all": {"every": stride, "steps": 7}})
    return kinds


def fits(o, layout, suits, made):
    if layout not in layouts_of(o):
        return False
    if suits == "accumulates":
        return made["accumulation"] > 1
    if suits == "unclipped":
        return o["clip"] == 0
    return suits is None or bool(suits(o))


def suited(kind, o, layout):
    """What would be no fault, or none that this layout can have."""
    half = o.get("precision") == "bfloat16"
    if "compiled" in o or o.get("checkpointed") and kind in ("another activation", "no residual", "outputs of another sample", "scaled attention scores"):
        return False
    if kind.startswith("swapped") and o.get("frozen"):  # one of the two is
        return False
    if kind == "gradients in bfloat16" and half or kind == "stale weights" and half:
        return False
    return not (kind == "a parameter in no group" and ("second" in o or o.get("frozen")))


def draw_fault(pool, kind):
    """The reference and the faulty one."""
    r = pool.r
    for attempt in range(100000):
        o = pool.family() if attempt < 100 else family(r)  # where none of the pool has what the fault needs
        layouts, suits, fault = {**faults(r), **OWN}[kind]
        possible = [layout for layout in layouts if layout in layouts_of(o)]
        if not possible:
            continue
        layout = r.choice(possible)
        faulty = pool.laid(o, layout, suits == "accumulates")
        if not fits(o, layout, suits, faulty) or not suited(kind, faulty, layout):
            continue
        if "experts" in o and any(name in fault.get("tensor", "") for name in ("up", "down")):  # it has no such matrices
            continue
        if o.get("frozen") and "blocks.0.up" in fault.get("tensor", ""):  # nothing moves it
            continue
        shares = 1 if layout == "tp" else faulty["ranks"]
        if kind == "outputs of another sample" and faulty["accumulation"] * shares == 8:  # a micro-batch has one alone
            continue
        if fault.get("rank") == 1 and faulty["ranks"] < 2 or kind.startswith("a rank") and faulty["ranks"] < 2:
            continue
        fault = dict(fault)
        if layout in LOOPS and "inside" in fault:  # nothing of ours stands between their optimizer's step and what follows
            fault["inside"] = True
        shared, both = fault.pop("all", {}), fault.pop("both", False)
        faulty |= shared
        # Only the same layout shows a small fault: other layouts round differently.
        elsewhere = r.random() < 0.35 and not bound(o) and not both and not shared and "fault" in fault and not (fault["fault"] == "undivided" and o["clip"]) and not fault["fault"] in ("element", "second_scaled", "clock", "half_gradient", "row_stuck", "not_decayed") and \
            not (o.get("precision") == "bfloat16" and fault["fault"] in ("noised", "noise", "nudged", "half_master", "activation", "scores", "update_scaled", "decayed_twice", "weighed"))
        if "size" in fault and fault["size"] is None:
            fault["size"] = r.choice(LARGE if elsewhere else SIZES)
        if elsewhere and fault["fault"] in ("noised", "activation", "weighed"):
            fault["size"] = max(fault.get("size", 0), 0.01) if fault["fault"] == "noised" else 1.5
        reference = dict(faulty)
        if elsewhere:
            reference = {**pool.laid(o, r.choice(layouts_of(o))), **shared}
        options = {**faulty.get("options", {}), **fault.pop("options", {})}
        faulty |= fault | ({"options": options} if options else {})
        if both:
            reference = {**faulty, "twin": 1}
        return reference, faulty


# What one recording decides: of the rest the training is sound, and another one.
ALONE = ("scaled gradient", "sign of a gradient", "zeroed gradient", "swapped gradients", "a slice of a gradient", "one element of a gradient", "noise on a gradient",
         "a gradient of the step before", "a gradient that is not finite", "a lost micro-batch", "a micro-batch twice", "a rank that is lost", "a rank that counts twice",
         "gradients that are not reduced", "gradients that are not set to zero", "a rank with another's samples", "samples of the step before", "a sample twice",
         "a schedule that moves twice", "clipping by each rank's norm", "a parameter that stands still", "decay twice", "parameters in bfloat16", "a scaled update",
         "a scaled update, afterwards", "a moved parameter", "noise on parameters", "no decay of one parameter", "a scaled second moment", "a step without an update",
         "moments set to zero", "swapped moments", "Adam's counter a step ahead", "stale weights", "a parameter in no group")
OWN = {  # which no comparison draws
    "a norm that counts a parameter twice": (("plain", "ddp", "fsdp2"), lambda o: o["clip"] == 0.1, {"fault": "norm_counts", "size": 2, "tensor": "words.weight", "at": 2}),
    "a norm that leaves a parameter out": (("plain", "ddp"), lambda o: o["clip"] == 0.1, {"fault": "norm_counts", "size": 0, "tensor": "words.weight", "at": 3}),
    "a rate behind the schedule": (("plain", "ddp", "fsdp2"), None, {"fault": "rate_behind", "size": 0.5, "at": 2}),
    "stale 16-bit weights": (("zero1", "zero2", "zero3"), lambda o: o.get("precision") == "bfloat16", {"fault": "stale_weights", "at": 2, "tensor": "blocks.1.up.weight", "rank": 0}),
}


def draw_alone(r, count, healthy):
    """Faults and healthy trainings without a reference."""
    pool, kinds = Pool(r, 16), [*ALONE, *OWN]
    for i in range(count):
        kind = kinds[i % len(kinds)]
        faulty = draw_fault(pool, kind)[1]
        while faulty["ranks"] > 2 or kind == "samples of the step before" and faulty["at"] == 3:  # which no later step tells from an epoch
            faulty = draw_fault(pool, kind)[1]
        print(f"{kind}: {i // len(kinds) + 1} | - | {text(faulty)} | inconsistent")
    for i in range(healthy):
        a = draw_healthy(pool)[0]
        while a["ranks"] > 2:
            a = draw_healthy(pool)[0]
        print(f"healthy, {a['layout']}: {i + 1} | - | {text(a)} | consistent")


def draw_healthy(pool):
    r, o = pool.r, pool.family()
    layouts = layouts_of(o)
    a = pool.laid(o, r.choice(layouts))
    if bound(o) or r.random() < 0.15:
        b = {**a, "twin": 1}
        if r.random() < 0.3:
            b |= {"every": 0}
        elif r.random() < 0.3:
            a, b = {**a, "steps": 7, "every": 2}, {**b, "steps": 7, "every": r.choice((1, 3))}
    else:
        b = pool.laid(o, r.choice(layouts), r.random() < 0.3)
        if a == b:
            b["twin"] = 1
    if r.random() < 0.03 and "compiled" in b:
        b["compiled"] = "inductor"
    return a, b


def main():
    seed, count, healthy = (int(word) for word in sys.argv[1:4])
    r = random.Random(seed)
    if sys.argv[4:] == ["alone"]:
        return draw_alone(r, count, healthy)
    pool, kinds = Pool(r, 16), list(faults(r))
    for i in range(count):
        kind = kinds[i % len(kinds)]
        reference, faulty = draw_fault(pool, kind)
        print(f"{kind}: {i // len(kinds) + 1} | {text(reference)} | {text(faulty)} | apart")
    seen = set()
    for i in range(healthy):
        a, b = draw_healthy(pool)
        while (text(a), text(b)) in seen or (text(b), text(a)) in seen:
            a, b = draw_healthy(pool)
        seen.add((text(a), text(b)))
        print(f"healthy, {a['layout']} and {b['layout']}: {i + 1} | {text(a)} | {text(b)} | equal")


if __name__ == "__main__":
    main()
