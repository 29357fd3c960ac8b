#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs of the real wandb and tensorboard packages, and what these packages read of a run of zs.

trackers.py write DIR                     a run of each: DIR/tensorboard, DIR/wandb
trackers.py tensorboard DIR METRICS.tsv   DIR as EventAccumulator reads it has every value of METRICS.tsv
trackers.py sync FOLDER METRICS.tsv       `wandb sync FOLDER`, against a server of this program on the loopback address
trackers.py long DIR STEPS                long runs of each: DIR/tensorboard, DIR/wandb
trackers.py read FOLDER                   reads such a run as Python does, and prints its last loss
"""
import csv
import http.server
import json
import math
import os
import subprocess
import sys
import threading
from pathlib import Path

NAMES = {"loss": "train/loss", "epoch": "train/epoch", "learning_rate": "train/learning_rate", "grad_norm": "train/grad_norm",
         "valid_loss": "valid/loss", "iteration_time": "timing/iteration_time", "alloc_mem": "system/cuda_memory_allocated",
         "peak_mem": "system/cuda_memory_peak", "step": "train/global_step"}
STEPS = [(10, 2.5, 3e-4), (20, 1e-5, 2.9e-4), (30, math.nan, 2.8e-4), (40, -1.25, 0.0)]


def write(folder):
    import numpy
    from torch.utils.tensorboard import SummaryWriter
    place = Path(folder, "tensorboard")
    first = SummaryWriter(str(place / "plain"))
    for step, loss, rate in STEPS:
        first.add_scalar("train/loss", loss, step)
        first.add_scalar("train/learning_rate", rate, step)
    first.add_text("args", json.dumps({"learning_rate": 3e-4, "seed": 7, "model_name": "gpt2"}))
    first.add_histogram("weights", numpy.array([1.0, 2.0, 3.0]), 10)
    first.close()
    again = SummaryWriter(str(place / "plain"), purge_step=30, filename_suffix=".again")
    for step, loss, rate in [(30, 1.5, 2.8e-4), (40, 1.25, 0.0)]:
        again.add_scalar("train/loss", loss, step)
        again.add_scalar("train/learning_rate", rate, step)
    again.close()
    tensors = SummaryWriter(str(place / "tensors"))
    for step, loss, rate in STEPS:
        tensors.add_scalar("train/loss", loss, step, new_style=True)
        tensors.add_scalar("train/learning_rate", rate, step, new_style=True, double_precision=True)
    tensors.close()

    import wandb
    os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=str(folder))
    run = wandb.init(project="peers", id="peer0001", name="a run", tags=["x", "y"],
                     config={"learning_rate": 3e-4, "seed": 7, "model_name": "gpt2", "optimizer": {"name": "adamw", "eps": 1e-8}})
    for step, loss, rate in STEPS:
        run.log({"train/loss": loss, "train/learning_rate": rate, "train/global_step": step, "note": f"step \"{step}\""})
    run.summary["best"] = 1e-5
    run.finish()


def metrics(path):
    with open(path, newline="") as file:
        rows = [line for line in file if not line.startswith("#")]
    rows = list(csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [{key: value for key, value in row.items() if value != "" and key not in ("run", "line", "part")} for row in rows]


def same(told, value):
    if isinstance(told, str):
        return told == value
    number = float(value)
    return told == number or (math.isnan(told) and math.isnan(number))


def as_float32(text):
    import numpy
    return str(float(numpy.float32(text)))


def tensorboard(folder, path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    events = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0}).Reload()
    count = 0
    rows = metrics(path)
    for key in {key for row in rows for key in row} - {"step", "state_digest"}:
        told = {event.step: event.value for event in events.Scalars(NAMES.get(key, key))}
        wanted = {int(row["step"]): row[key] for row in rows if key in row}
        assert told.keys() == wanted.keys(), (key, told, wanted)
        for step, value in wanted.items():
            assert same(told[step], as_float32(value)), (key, step, told[step], value)
            count += 1
    text = events.Tensors("configuration/text_summary")[-1].tensor_proto.string_val[0].decode()
    assert "| seed | 7 |" in text and "| state_digest | " in text, text
    print(f"tensorboard's EventAccumulator: {count} values of {len(rows)} steps")


def compare_history(history, path, who):
    rows = metrics(path)
    assert len(history) == len(rows), (len(history), len(rows))
    count = 0
    for told, row in zip(history, rows):
        for key, value in row.items():
            assert same(told[NAMES.get(key, key)], value), (key, told, row)
            count += 1
        assert told["_step"] == int(row["step"]), told
    print(f"{who}: {count} values of {len(rows)} steps")


class Server(http.server.BaseHTTPRequestHandler):
    """As much of W&B's server as `wandb sync` asks for; keeps what it is sent."""
    files, runs, exits = {}, [], []

    def log_message(self, *_):
        pass

    def answer(self, content):
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer({})

    def do_PUT(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer({})

    def do_POST(self):
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip
            data = gzip.decompress(data)
        content = json.loads(data or b"{}")
        if "file_stream" in self.path:
            for name, part in (content.get("files") or {}).items():
                known = self.files.setdefault(name, [])
                offset = part.get("offset", len(known))
                known[offset:offset + len(part["content"])] = part["content"]
            if content.get("complete"):
                self.exits.append(content.get("exitcode"))
            return self.answer({"exitcode": None, "limits": {}})
        query, given = content.get("query", ""), content.get("variables") or {}
        if "upsertBucket" in query:
            self.runs.append(given)
            project = {"id": "p", "name": given.get("project") or "p", "entity": {"id": "e", "name": "e"}}
            bucket = {"id": "b", "name": given.get("name"), "displayName": given.get("displayName"), "description": None, "config": None,
                      "sweepName": None, "project": project, "historyLineCount": 0}
            return self.answer({"data": {"upsertBucket": {"bucket": bucket, "inserted": True}}})
        if "serverInfo" in query.lower():
            return self.answer({"data": {"serverInfo": {"cliVersionInfo": {"max_cli_version": "9.9.9"}, "latestLocalVersionInfo": None,
                                                        "features": []}}})
        if "viewer" in query:
            return self.answer({"data": {"viewer": {"id": "v", "entity": "e", "username": "e", "flags": "{}", "teams": {"edges": []}}}})
        if "createRunFiles" in query:
            files = [{"name": name, "uploadUrl": f"http://127.0.0.1:{self.server.server_port}/put"} for name in given.get("files", [])]
            return self.answer({"data": {"createRunFiles": {"runID": "b", "uploadHeaders": [], "files": files}}})
        self.answer({"data": {"model": None, "project": None, "__type": None, "serverInfo": None}})


def sync(folder, tsv):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    environment = {**os.environ, "WANDB_BASE_URL": address, "WANDB_API_KEY": "0" * 40, "WANDB_ERROR_REPORTING": "false"}
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "WANDB_DIR", "WANDB_MODE"):
        environment.pop(name, None)
    told = subprocess.run([str(Path(sys.executable).parent / "wandb"), "sync", str(Path(folder).resolve())], cwd=Path(folder).parent, env=environment, timeout=120, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    server.shutdown()
    assert told.returncode == 0, told.stdout
    assert Server.runs, told.stdout
    config = json.loads(next(run["config"] for run in Server.runs if run.get("config")))
    assert config["seed"]["value"] == 7, config
    assert list(Path(folder).glob("*.wandb.synced")), told.stdout
    compare_history([json.loads(line) for line in Server.files["wandb-history.jsonl"]], tsv, "wandb sync")
    assert Server.exits == [0], Server.exits
    print("wandb sync: configuration, console output, exit code", Server.exits[0], len(Server.files.get("output.log", [])), "lines")


COLUMNS = ("train/loss", "train/learning_rate", "train/grad_norm", "timing/iteration_time")


def long(folder, steps):
    import random
    import struct
    import zlib
    from torch.utils.tensorboard import SummaryWriter
    from wandb.proto import wandb_internal_pb2
    chance = random.Random(1)
    writer = SummaryWriter(str(Path(folder, "tensorboard")))
    run = Path(folder, "wandb", "offline-run-20260101_000000-long0001")
    run.mkdir(parents=True)
    with open(run / "run-long0001.wandb", "wb") as file:
        def add(record):
            data, first = record.SerializeToString(), True
            while True:  # chunks of LevelDB's log, in blocks of 32 KiB
                room = 32768 - file.tell() % 32768
                if room < 7:
                    file.write(b"\0" * room)
                    continue
                part, data = data[:room - 7], data[room - 7:]
                kind = (1 if not data else 2) if first else (4 if not data else 3)
                file.write(struct.pack("<IHB", zlib.crc32(bytes([kind]) + part), len(part), kind) + part)
                first = False
                if not data:
                    return

        file.write(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
        record = wandb_internal_pb2.Record(num=1)
        record.run.run_id, record.run.project = "long0001", "peers"
        add(record)
        for step in range(1, int(steps) + 1):
            record = wandb_internal_pb2.Record(num=step + 1)
            record.history.step.num = step
            for key, value in [("train/global_step", step)] + [(name, chance.random()) for name in COLUMNS]:
                item = record.history.item.add()
                item.key, item.value_json = key, json.dumps(value)
                if key != "train/global_step":
                    writer.add_scalar(key, value, step)
            add(record)
    writer.close()


def read(folder):
    if Path(folder).name == "tensorboard":
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        events = EventAccumulator(folder, size_guidance={"scalars": 0}).Reload()
        losses = [event.value for event in events.Scalars("train/loss")]
        print(len(losses), losses[-1])
        return
    import struct
    import zlib
    from wandb.proto import wandb_internal_pb2
    rows = []
    with open(next(Path(folder).glob("*/*.wandb")), "rb") as file:
        data = file.read()
    at, whole = 7, b""
    while at < len(data):
        room = 32768 - at % 32768
        if room < 7:
            at += room
            continue
        crc, size, kind = struct.unpack_from("<IHB", data, at)
        part = data[at + 7:at + 7 + size]
        assert zlib.crc32(bytes([kind]) + part) == crc, at
        at += 7 + size
        whole += part
        if kind in (1, 4):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            whole = b""
            if record.HasField("history"):
                rows.append({item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item})
    print(len(rows), rows[-1]["train/loss"])


if __name__ == "__main__":
    {"write": write, "long": long, "read": read, "tensorboard": tensorboard, "sync": sync}[sys.argv[1]](*sys.argv[2:])
