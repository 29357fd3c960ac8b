# SPDX-License-Identifier: Apache-2.0
# trace.py make FOLDER [LAUNCHES]: traces of two ranks as PyTorch's profiler writes them, with the quirks that figures
# depend on: fractions of microseconds, several streams, overlapping collectives, launches that come late, a cut last step.
# A launch and a kernel never begin in one microsecond, where the peer's order is any, and no kernel is called ...dma...,
# which its releases have counted in two ways.
# trace.py hta FOLDER: what Holistic Trace Analysis says of the traces in it, as JSON.
# trace.py compare HTA.json ZS.json: both side by side; status 1 where they differ.
import gzip
import json
import math
import os
import random
import sys


def make(folder, launches=300):
    os.makedirs(folder, exist_ok=True)
    for rank in (0, 1):
        draw = random.Random(rank)
        events, now, free, number = [], 1000.125, {7: 0.0, 20: 0.0, 24: 0.0}, 0

        def add(category, name, ts, dur, thread, **args):
            events.append({"ph": "X", "cat": category, "name": name, "pid": 0 if "stream" in args else 4242,
                           "tid": args.get("stream", thread), "ts": round(ts, 3), "dur": round(dur, 3), "args": args})

        for step in range(4):
            start = now
            for _ in range(launches):
                number += 1
                stream = draw.choice([7] * 6 + [20, 24])
                call, kernel = {7: ("cudaLaunchKernel", draw.choice(["gemm_128x64", "void at::native::elementwise", "softmax_warp"])),
                                20: ("cudaLaunchKernelExC", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
                                24: ("cudaMemcpyAsync", "Memcpy HtoD (Pinned -> Device)")}[stream]
                now = 2 * math.ceil(now / 2) - 0.25
                length, run = draw.uniform(3, 12), draw.uniform(1, 60) * (4 if stream == 20 else 1)
                add("cpu_op", draw.choice(["aten::mm", "aten::add", "c10d::allreduce_"]), now - 1, length + 0.9, 1)
                add("cuda_runtime", call, now, length, 1, correlation=number)
                begin = max(now + length + draw.uniform(0, 5), free[stream] + draw.choice([0.5, 2, 45]))
                begin = 2 * math.ceil(begin / 2) + 0.75
                extra = {"memory bandwidth (GB/s)": 12.5, "bytes": 4096} if stream == 24 else {}
                add("gpu_memcpy" if stream == 24 else "kernel", kernel, begin, run, 1, device=0, stream=stream, correlation=number, **extra)
                free[stream] = begin + run
                now += length + draw.choice([1, 5, 80])
            add("user_annotation", f"ProfilerStep#{step + 10}", start - 2, now - start, 1)
            now += 200
        draw.shuffle(events)
        events.sort(key=lambda event: event["cat"] != "user_annotation")  # its first event is nobody's partner
        trace = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}, "traceEvents": events}
        with gzip.GzipFile(os.path.join(folder, f"rank-{rank}.pt.trace.json.gz"), "w", mtime=0) as file:
            file.write(json.dumps(trace, separators=(", ", ": ")).encode())


def hta(folder):
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_dir=folder)
    figures = {}
    for row in analysis.get_temporal_breakdown(visualize=False).to_dict("records"):
        figures[f"temporal {row['rank']}"] = [row[f"{name}_time(us)"] for name in ("idle", "compute", "non_compute", "kernel")]
    for row in analysis.get_comm_comp_overlap(visualize=False).to_dict("records"):
        figures[f"overlap {row['rank']}"] = [row["comp_comm_overlap_pctg"]]
    kinds, _ = analysis.get_gpu_kernel_breakdown(visualize=False)
    for row in kinds.to_dict("records"):
        figures[f"kinds {row['kernel_type']}".lower()] = [row["sum"]]
    idle, _ = analysis.get_idle_time_breakdown(ranks=[0, 1], visualize=False, show_idle_interval_stats=False)
    for row in idle.to_dict("records"):
        figures[f"idle {row['rank']} {row['stream']} {row['idle_category']}"] = [row["idle_time"]]
    for (rank, stream), row in analysis.get_queue_length_summary(ranks=[0, 1]).iterrows():
        values = row["queue_length"] if "queue_length" in row else row
        figures[f"queue {rank} {stream}"] = [values[name] for name in ("count", "mean", "std", "min", "25%", "50%", "75%", "max")]
    for rank, launches in analysis.get_cuda_kernel_launch_stats(ranks=[0, 1], visualize=False).items():
        figures[f"launch {rank}"] = [len(launches), float(launches["launch_delay"].mean()), float(launches["launch_delay"].max())]
    json.dump(figures, sys.stdout, indent=1, sort_keys=True, default=float)
    print()


def figures_of(path):
    with open(path) as file:
        zs = json.load(file)
    figures = {}
    for row in zs["temporal"]:
        figures[f"temporal {row['rank']}"] = [row[name] for name in ("idle", "computing", "non_computing", "kernel_time")]
    for row in zs["overlap"]:
        figures[f"overlap {row['rank']}"] = [row["overlap_percent"]]
    for row in zs["kinds"]:
        figures[f"kinds {row['kind']}"] = [row["time"]]
    for row in zs["idle"]:
        for name in ("host_wait", "kernel_wait", "other_wait"):
            figures[f"idle {row['rank']} {row['stream']} {name.replace('other_wait', 'other')}"] = [row[name]]
    for row in zs["queue"]:
        figures[f"queue {row['rank']} {row['stream']}"] = [row[name] for name in ("count", "mean", "std", "min", "25%", "50%", "75%", "max")]
    for row in zs["launch"]:
        figures[f"launch {row['rank']}"] = [row[name] for name in ("launches", "delay_mean", "delay_max")]
    return figures


def compare(peer, own):
    with open(peer) as file:
        theirs = json.load(file)
    ours, wrong, compared = figures_of(own), 0, 0
    for name, values in sorted(theirs.items()):
        if not any(values) and name not in ours:
            continue  # they have a row of nothing
        mine = ours.get(name)
        compared += len(values)
        if mine is None or len(mine) != len(values) or any(abs(a - b) > 1e-9 * max(1, abs(a)) for a, b in zip(values, mine)):
            wrong += 1
            print(f"{name}: theirs {values}, ours {mine}")
    if not compared:
        raise SystemExit("nothing was compared")
    print(f"zs-trace: {compared} figures beside Holistic Trace Analysis, {wrong} rows differ")
    return 1 if wrong else 0


if sys.argv[1] == "make":
    make(sys.argv[2], *map(int, sys.argv[3:]))
elif sys.argv[1] == "hta":
    hta(sys.argv[2])
else:
    sys.exit(compare(*sys.argv[2:]))
