# SPDX-License-Identifier: Apache-2.0
"""python mutate.py COUNT FOLDER...: damages a copy of each checkpoint in COUNT ways (torn, cut, a bit, a file gone, swapped, under another name, of nothing,
a hostile pickle, a path that leads out) and asks zs-checkpoint. It must say what is wrong and where, or read the very same tensors; and it must
not run, write or hang. Prints how many were located and how many were the same; status 1 with each that was neither."""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor

HOSTILE = ["posix\nsystem", "os\npopen", "subprocess\nPopen", "builtins\neval", "builtins\nexec", "importlib\nimport_module", "shutil\nrmtree"]


def asked(*words):
    return subprocess.run(["zs-checkpoint", *words], capture_output=True, text=True, timeout=60, errors="replace")


def held(folder):
    return asked("show", "--tensors", "--digests", "--format", "tsv", folder).stdout


def everything(folder):
    return sorted((os.path.join(at, name), os.path.getsize(os.path.join(at, name))) for at, _, names in os.walk(folder) for name in names)


def damage(folder, rng):
    """Damages it, and says how."""
    files = [path for path, _ in everything(folder) if not path.endswith((".py", ".json", ".txt"))]
    path = rng.choice(files)
    # No file of ZeRO-3's model says which rank's it is: what ranks have of frozen parameters may be exchanged unseen.
    model = "zero_pp_rank_", "_model_states.pt"
    ranks = model[0] in os.path.basename(path) and path.endswith(model[1])
    other = rng.choice([file for file in files if not ranks or not file.endswith(model[1])])
    data = open(path, "rb").read()
    way = rng.choice(["torn", "bit", "bytes", "gone", "empty", "swapped", "copied", "named", "hostile", "out", "insert"])
    if way == "torn":
        open(path, "wb").write(data[:rng.randrange(len(data))])
    elif way == "bit":
        at = rng.randrange(len(data))
        open(path, "wb").write(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:])
    elif way == "bytes":
        at = rng.randrange(len(data))
        open(path, "wb").write(data[:at] + rng.randbytes(16) + data[at + 16:])
    elif way == "insert":
        at = rng.randrange(len(data))
        open(path, "wb").write(data[:at] + rng.randbytes(1 + rng.randrange(64)) + data[at:])
    elif way == "gone":
        os.remove(path)
    elif way == "empty":
        open(path, "wb").close()
    elif way == "swapped":
        os.rename(path, path + ".x"), os.rename(other if other != path else path + ".x", path), other != path and os.rename(path + ".x", other)
    elif way == "copied":
        shutil.copy(other, path) if other != path else None
    elif way == "named":
        os.rename(path, path.replace("rank_0", "rank_7").replace("__0_", "__7_") if "rank_0" in path or "__0_" in path else path + "_")
    elif way == "hostile":
        name = rng.choice(HOSTILE).encode()
        code = b"\x80\x02c" + name + b"\nX\x0a\x00\x00\x00touch ran-x\x85R."
        if zipfile.is_zipfile(path) and not path.endswith(".distcp"):
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("archive/data.pkl", code)
                archive.writestr("archive/version", "3\n")
        else:
            open(path, "wb").write(code)
    elif way == "out":
        for path in files:
            data = open(path, "rb").read()
            if path.endswith(("latest", "latest_universal")):
                open(path, "wb").write(rng.choice([b"../../../etc", b"/etc", b"..", b"a\0b", b".", b"global_step3/../../x"]))
                break
            if path.endswith(".metadata"):
                open(path, "wb").write(data.replace(b"__0_0.distcp", b"../.._distcp", 1).replace(b"__1_0.distcp", b"/etc//passwd", 1))
                break
    return way + " " + os.path.relpath(path, folder)


def tried(source, seed, before):
    with tempfile.TemporaryDirectory() as room:
        folder = os.path.join(room, "checkpoint")
        shutil.copytree(source, folder)
        way = damage(folder, random.Random(seed))
        files = everything(room)
        try:
            done = asked("verify", folder)
        except subprocess.TimeoutExpired:
            return f"{seed} {way}: hangs"
        if everything(room) != files or os.path.exists("ran-x"):
            return f"{seed} {way}: something was written"
        if done.returncode in (1, 2) and room in done.stderr:
            return "located"
        if done.returncode == 0 and held(folder) == before:
            return "same"
        return f"{seed} {way}: status {done.returncode}: {done.stderr[:300] or done.stdout[:300]}"


def main():
    count, bad, sums = int(sys.argv[1]), 0, {"located": 0, "same": 0}
    for source in sys.argv[2:]:
        before = held(source)
        with ThreadPoolExecutor(2) as pool:
            for said in pool.map(lambda seed: tried(source, seed, before), range(count)):
                if said in sums:
                    sums[said] += 1
                else:
                    print(source, said)
                    bad = 1
    print(f"{sums['located']} located, {sums['same']} the same")
    sys.exit(bad)


if __name__ == "__main__":
    main()
