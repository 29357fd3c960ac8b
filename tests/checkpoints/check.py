# SPDX-License-Identifier: Apache-2.0
"""python check.py [--record FOLDER] CASE...: each as write.py left it: CHECKPOINT and truth.pt. What zs-checkpoint reads in the one must be, bit by bit,
what the training held (the other). A line a folder; status 1 where one differs, or has less than the training held. --record FOLDER packs each checkpoint as
FOLDER/NAME.tar.gz, with the digests of what the training held as FOLDER/NAME.tsv, for tests without these packages."""
import hashlib
import os
import subprocess
import sys

import torch


def digest(tensor):
    tensor = tensor.detach().cpu().contiguous()
    return hashlib.sha256(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"").hexdigest()


def rows(path):
    done = subprocess.run(["zs-checkpoint", "show", "--tensors", "--digests", "--format", "tsv", path], capture_output=True, text=True)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return done, [dict(zip(lines[0], line)) for line in lines[1:]] if lines else []


def note(path):
    return subprocess.run(["zs-checkpoint", "show", path], capture_output=True, text=True).stdout


def check(folder):
    truth = torch.load(folder + "/truth.pt", weights_only=False)
    case = os.path.basename(os.path.normpath(folder))
    path, failures, compared = folder + "/checkpoint", [], 0
    universal = [f for f in sorted(os.listdir(path)) if f.endswith("_universal") and os.path.isdir(os.path.join(path, f))] if os.path.isdir(path) else []
    if "trainer" in case:
        path += "/checkpoint-3"
    for path in [path] + [os.path.join(path, f) for f in universal]:
        done, table = rows(path)
        if done.returncode != 0:
            return f"status {done.returncode}: {done.stderr.strip()[:300]}", 0
        held = {(row["kind"], row["name"]): row for row in table}
        numbered = any(row["name"].startswith("#") for row in table)
        ties = {row["name"]: row["tied"] for row in table if row["tied"]}
        for kind in ("weight", "master", "exp_avg", "exp_avg_sq"):
            for name, tensor in truth.get(kind, {}).items():
                found = held.get((kind, name)) or (held.get(("buffer", name)) if kind == "weight" else None)
                if found is None and numbered and kind.startswith("exp"):  # whose state it is cannot be known: it must be there all the same
                    if not any(row["kind"] == kind and row["sha256"] == digest(tensor) for row in table):
                        failures.append(f"{kind} {name} is under no number")
                    compared += 1
                    continue
                if found is None and kind == "weight" and ("stage3" in case or path.endswith("_universal")):
                    continue  # the format has no 16-bit weights of it
                if found is None and kind == "weight" and ("trainer" in case or "accelerate" in case) and "head" in name:
                    continue  # safetensors have one of two tied tensors
                if found is None and kind != "weight" and "no optimizer's state" in done.stdout + note(path):
                    continue  # 0.18.2 to 0.18.4 save none at ZeRO-0 with 16 bits, and zs-checkpoint says so
                if found is None:
                    failures.append(f"{kind} {name} is missing")
                    continue
                compared += 1
                if found["sha256"] != digest(tensor) or found["shape"] != str(list(tensor.shape)):
                    failures.append(f"{kind} {name} has other bits")
                step = truth.get("step", {}).get(name)
                if kind == "exp_avg" and step is not None and float(found["step"] or "nan") != step:
                    failures.append(f"step of {name} is {found['step']}, not {step}")
    if not compared:
        failures.append("nothing was compared")
    return "; ".join(failures[:4]), compared


def record(folder, into):
    name = "-".join(p for p in folder.rstrip("/").split("/")[-2:] if p != "other")
    truth = torch.load(folder + "/truth.pt", weights_only=False)
    with open(f"{into}/{name}.tsv", "w") as out:
        for kind in ("weight", "master", "exp_avg", "exp_avg_sq"):
            for tensor_name, tensor in truth.get(kind, {}).items():
                out.write(f"{tensor_name}\t{kind}\t{digest(tensor)}\n")
    subprocess.run(["tar", "-C", folder, "--sort=name", "--mtime=2000-01-01", "--owner=0", "--group=0", "--numeric-owner",
                    "--exclude=zero_to_*.py", "--exclude=training_args.bin", "-czf", f"{into}/{name}.tar.gz", "checkpoint"], check=True)


def main():
    bad, into, folders = 0, None, sys.argv[1:]
    if folders[:1] == ["--record"]:
        into, folders = folders[1], folders[2:]
    for folder in folders:
        if not os.path.exists(folder + "/truth.pt"):
            continue
        failures, compared = check(folder)
        bad += bool(failures)
        if into and not failures:
            record(folder, into)
        print(("FAILED " + failures if failures else f"{compared} tensors equal") + "  " + folder)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
