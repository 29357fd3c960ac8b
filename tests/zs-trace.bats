# SPDX-License-Identifier: Apache-2.0
# zs-trace: the figures of Holistic Trace Analysis, from traces of any program.
setup() {
  bats_load_library bats-support
  bats_load_library bats-assert
  load helper
  cd "$BATS_TEST_TMPDIR"
}

# event CATEGORY NAME TS DUR [ARGS]: one of traceEvents, with a comma.
event() { echo "{\"ph\": \"X\", \"cat\": \"$1\", \"name\": \"$2\", \"pid\": 0, \"tid\": 1, \"ts\": $3, \"dur\": $4, \"args\": {${5:-}}},"; }

# A rank whose numbers are worked out by hand below.
some_trace() {
  echo '{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 4}, "traceEvents": ['
  event cuda_runtime cudaLaunchKernel 100 10 '"correlation": 1'
  event kernel gemm 120 80 '"stream": 7, "correlation": 1'
  event cuda_runtime cudaLaunchKernel 150 10 '"correlation": 2'
  event kernel gemm 210 40 '"stream": 7, "correlation": 2'
  event cuda_runtime cudaLaunchKernel 160 10 '"correlation": 3'
  event kernel ncclDevKernel_AllReduce 230 70 '"stream": 9, "correlation": 3'
  event cuda_runtime cudaMemcpyAsync 400 60 '"correlation": 4'
  event gpu_memcpy 'Memcpy HtoD (Pinned -> Device)' 420 30 '"stream": 7, "correlation": 4, "bytes": 8'
  event cpu_op 'aten::linear \"x\"' 90 100
  event cpu_op aten::addmm 100 60
  echo '{"ph": "i", "name": "[memory]", "ts": 5, "args": {"Device Id": 0, "Total Allocated": 100, "Total Reserved": 300}},'
  echo '{"ph": "i", "name": "[memory]", "ts": 130, "args": {"Device Id": 0, "Total Allocated": 250, "Total Reserved": 300}},'
  echo '{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "a, b: {[\"}"}}'
  echo '], "traceName": "x"}'
}

rows() { zs-trace --format tsv --show "$@" | tail -n +2; }

@test "zs-trace does not count a synchronisation as work of the GPU" {
  {
    echo '{"traceEvents": ['
    event cuda_runtime cudaLaunchKernel 0 5 '"correlation": 1'
    event kernel gemm 10 20 '"stream": 7, "correlation": 1'
    event cuda_sync 'Stream Sync' 20 80 '"stream": 7, "correlation": 2'
    event kernel gemm 40 10 '"stream": 7, "correlation": 1'
    echo '{}]}'
  } >s.json
  # From 10 to 50, 30 of them busy.
  assert_equal "$(rows temporal s.json | cut -f 2-3)" $'40\t10'
}

@test "each analysis of a small trace, worked out by hand" {
  some_trace >t.json
  # From 120 to 450; busy 120-200, 210-300, 420-450; computing 80 + 40.
  assert_equal "$(rows temporal t.json)" $'3\t330\t130\t39.39\t120\t36.36\t80\t24.24'
  # Stream 7: 10 behind the first gemm (launched before its end, short), 170 before the copy, which came from the host's side.
  run rows idle t.json
  assert_line --index 0 $'3\t7\t180\t170\t94.44\t10\t5.56\t0\t0'
  # 230 to 250 both.
  assert_equal "$(rows overlap t.json)" $'3\t70\t20\t28.57'
  assert_equal "$(rows kinds t.json)" $'computation\t100\t50\ncommunication\t50\t25\nmemory\t30\t15\ncomputation overlapping communication\t20\t10'
  assert_equal "$(rows kernels t.json | head -n 1 | cut -f 1-4)" $'gemm\t2\t120\t60'
  assert_equal "$(rows queue t.json | head -n 1 | cut -f 1-3,6,10)" $'3\t7\t6\t0\t1'
  assert_equal "$(rows launch t.json | cut -f 1,2,5)" $'3\t4\t60'
  assert_equal "$(rows operators t.json | cut -f 1-3)" $'aten::addmm\t1\t60\naten::linear "x"\t1\t40'
  assert_equal "$(rows memory t.json)" $'3\t0\t2\t250\t40\t300'
}

@test "tables for people: each head is of a name, a count or a share, or has a unit" {
  some_trace >t.json
  some_trace | sed 's/"rank": 3/"rank": 2/; s/AllReduce 230 70/AllReduce 230 60/' >u.json
  {
    zs-trace t.json u.json
    zs-trace --against t.json u.json
  } >tables
  [ "$(grep -c '^[a-z_]*: ' tables)" -gt 11 ] || complain "$(cat tables)"
  local plain='rank|stream|kind|kernel|operator|operation|collective|annotation|bound_by|device|on|sign|count(_.*)?|points|launches|short_kernels|slow_calls|late_starts|came_last|(.*_)?percent'
  while read -r analysis heads; do
    for head in $heads; do
      [[ $head =~ ^($plain)$ || $head =~ \((us|bytes)\)$ ]] && continue
      [[ $analysis == queue: && $head =~ ^(mean|std|min|max|25%|50%|75%)$ ]] || complain "$analysis $head"
    done
  done < <(awk '/^[a-z_]+: / { name = $1; getline; gsub(/ \(/, "("); print name, $0 }' tables)
  verdict
}

@test "plain, compressed, from a pipe and as a folder: the same" {
  some_trace >t.json
  gzip -k t.json
  zs-trace --format json t.json | jq 'del(.traces)' >a
  zs-trace --format json t.json.gz | jq 'del(.traces)' | diff a -
  zs-trace --format json <t.json | jq 'del(.traces)' | diff a -
  mkdir d
  mv t.json.gz d
  zs-trace --format json d | jq 'del(.traces)' | diff a -
  [ "$(zs-trace --format json d | jq -c '.traces[0] | [.rank, .world_size, .events]')" = '[3,4,13]' ]
}

@test "the critical path: what the end waited for, worked out by hand" {
  some_trace >t.json
  # Back from 450: the copy, 30, which began while its launch was made; before that the host, from 420 to 90: it waits for
  # nobody, since no call synchronises.
  assert_equal "$(rows critical t.json)" $'3\tmemory\t30\t8.33\n3\thost\t330\t91.67'
  {
    echo '{"traceEvents": ['
    event cuda_runtime cudaLaunchKernel 0 10 '"correlation": 1'
    event kernel gemm 30 100 '"stream": 7, "correlation": 1'
    event cuda_runtime cudaLaunchKernel 20 10 '"correlation": 2'
    event kernel ncclDevKernel_AllReduce 150 50 '"stream": 9, "correlation": 2'
    event cuda_runtime cudaLaunchKernel 30 10 '"correlation": 3'
    event kernel gemm 205 20 '"stream": 9, "correlation": 3'
    event cuda_runtime cudaStreamSynchronize 100 140 '"correlation": 4'
    event cuda_runtime cudaLaunchKernel 300 10 '"correlation": 5'
    event kernel last 320 30 '"stream": 7, "correlation": 5'
    echo '{}]}'
  } >p.json
  # Back from 350: last 30; its launch 10; the host, 85, which until 225 had waited for stream 9: gemm 20; 5 behind the
  # all-reduce, 50. That was launched long before 150: it waited 20 for stream 7, whose gemm took 100, 20 behind its launch
  # at 10.
  assert_equal "$(rows critical p.json)" $'0\tcomputation\t150\t42.86\n0\tcommunication\t50\t14.29\n0\tlaunch\t30\t8.57\n0\tqueue\t25\t7.14\n0\thost\t95\t27.14'
  assert_equal "$(rows critical_kernels p.json | cut -f 1-3)" $'gemm\t2\t120\nncclDevKernel_AllReduce\t1\t50\nlast\t1\t30'
}

@test "stragglers: who came last to each collective, and how long the others waited" {
  for rank in 0 1 2; do
    {
      echo "{\"distributedInfo\": {\"rank\": $rank, \"world_size\": 3}, \"traceEvents\": ["
      event kernel ncclDevKernel_AllReduce 100 $((50 - 10 * rank)) '"stream": 9, "correlation": 1'
      event kernel ncclDevKernel_AllReduce 900 $((20 + 10 * rank)) '"stream": 9, "correlation": 2'
      echo '{}]}'
    } >rank-$rank.json
  done
  # First rank 2 comes last: the others wait 20 and 10; then rank 0: they wait 10 and 20.
  run -0 rows stragglers rank-*.json
  [[ $output == $'ncclDevKernel_AllReduce\t2\t'[02]$'\t1\t50\t30\t60' ]] || complain "$output"
  [ -z "$(rows stragglers rank-0.json)" ] || complain "one rank waits for nobody"
  verdict
}

@test "whose kernels begin late" {
  {
    echo '{"traceEvents": ['
    event cpu_op aten::mm 0 50
    event cuda_runtime cudaLaunchKernel 10 10 '"correlation": 1'
    event kernel gemm 140 5 '"stream": 7, "correlation": 1'
    event cpu_op aten::mm 200 50
    event cuda_runtime cudaLaunchKernel 210 10 '"correlation": 2'
    event kernel gemm 230 5 '"stream": 7, "correlation": 2'
    echo '{}]}'
  } >t.json
  assert_equal "$(rows delays t.json)" $'aten::mm\tgemm\t2\t1\t50\t130\t65\t120'
}

@test "clocks that went back are said" {
  {
    echo '{"traceEvents": ['
    event cuda_runtime cudaLaunchKernel 100 10 '"correlation": 1'
    event kernel gemm 60 20 '"stream": 7, "correlation": 1'
    event cpu_op aten::linear 200 100
    event cpu_op aten::mm 250 100
    echo '{}]}'
  } >t.json
  run -1 --separate-stderr zs-trace t.json
  assert_equal "$stderr" "zs-trace: t.json: 1 kernel begins before the launch, by up to 40 us: the clocks of host and GPU disagree, and waits are as wrong
zs-trace: t.json: 1 operator ends after the operator around it: the host's clock went back, or events are missing"
}

@test "HDF5, a figure, and a report" {
  some_trace >t.json
  zs-trace -o t.h5 t.json
  run -0 /usr/bin/python3 -c 'import h5py; table = h5py.File("t.h5")["tables/temporal"]; print(table["idle"][0], table["idle"].attrs["unit"].decode(), table["computing_percent"][0])'
  assert_output "130 us 36.36"
  zs-trace --format json -o t.out t.json
  zs-trace -o t2.json t.json
  diff t.out t2.json
  run -0 zs-plot trace t.json
  assert_output --partial "Profile of 1 rank"
  assert_output --partial "Kernels with the most time"
  zs-plot trace t.json -o t.svg
  grep -q 'critical path' t.svg
  run -0 zs-report --trace t.json -o t.html
  grep -q 'Where the time of each rank' t.html
  grep -q '39.39' t.html
}

@test "a figure names kernels by what tells them apart, and a queue that does not change is level" {
  {
    echo '{"traceEvents": ['
    event kernel 'void at::native::(anonymous namespace)::reduce_kernel<512, at::native::Sum<float> >(at::Config, int)' 10 9 '"stream": 7, "correlation": 1'
    event kernel 'Memcpy HtoD (Pinned -> Device)' 20 5 '"stream": 7, "correlation": 2'
    event kernel 'ncclKernel_AllReduce(ncclDevComm*, unsigned long)' 30 5 '"stream": 7, "correlation": 3'
    event kernel 'void cutlass::Kernel<cutlass::gemm::Traits>::run(int)' 40 5 '"stream": 7, "correlation": 4'
    # Two bursts of launches, far apart.
    for i in {100..1099}; do
      at=$((i < 600 ? i : i + 1000000))
      event cuda_runtime cudaLaunchKernel $at 1 "\"correlation\": $i"
      event kernel gemm $((at + i % 7)) 1 "\"stream\": 7, \"correlation\": $i"
    done
    echo '{}]}'
  } >t.json
  zs-report --trace t.json -o t.html || (($? == 1))
  for name in 'reduce_kernel&lt;512, Sum&lt;float&gt; &gt;' 'Memcpy HtoD (Pinned -&gt; Device)' ncclKernel_AllReduce 'Kernel&lt;Traits&gt;::run'; do
    grep -qF ">$name<" t.html || complain "no $name"
  done
  run -0 /usr/bin/python3 - <<'END'
import json, re
curves = json.loads(re.search(r'application/json">(.*?)</script>', open("t.html").read()).group(1))
x, y = next((s["x"], s["y"]) for panel in curves for s in panel["series"])
gap = max(range(1, len(x)), key=lambda i: x[i] - x[i - 1])
print(len(x) >= 4, y[gap] == y[gap - 1])
END
  assert_output "True True"
  verdict
}

@test "of several profiler steps the last is left out, with the kernels that it launched" {
  {
    echo '{"traceEvents": ['
    for step in 1 2 3; do
      event user_annotation "ProfilerStep#$step" $((step * 1000)) 900
      event cuda_runtime cudaLaunchKernel $((step * 1000 + 10)) 5 "\"correlation\": $step"
      event kernel gemm $((step * 1000 + 100)) 100 "\"stream\": 7, \"correlation\": $step"
    done
    echo '{}]}'
  } >t.json
  assert_equal "$(rows kernels t.json | cut -f 1-3)" $'gemm\t2\t200'
  assert_equal "$(rows kernels --with_last_step t.json | cut -f 1-3)" $'gemm\t3\t300'
}

@test "what differs between two traces" {
  some_trace >a.json
  some_trace | sed '/AllReduce/d; s/"name": "aten::addmm"/"name": "aten::mm"/' >b.json
  run -0 zs-trace --against a.json --format tsv b.json
  assert_line $'ncclDevKernel_AllReduce\tgpu\t-\t1\t0\t-1\t70\t0\t-70'
  assert_line $'aten::mm\tcpu\t+\t0\t1\t1\t0\t60\t60'
  assert_line $'gemm\tgpu\t=\t2\t2\t0\t120\t120\t0'
}

# Cut at each byte: lib/formats/trace/trace_test.cpp.
@test "a trace that is cut, or damaged, is read up to there, and said" {
  some_trace >t.json
  local size
  for ((size = 0; size < $(stat -c %s t.json) - 30; size += 97)); do
    head -c "$size" t.json >cut.json
    run zs-trace cut.json
    [[ $status == [12] && $output == *"zs-trace: cut.json: "* ]] || complain "$size bytes: $status: $output"
  done
  gzip -c t.json | head -c 300 >cut.json.gz
  run zs-trace cut.json.gz
  [[ $status == [12] && $output == *"truncated gzip data"* ]] || complain "gzip: $status: $output"
  sed 's/"ts": 210, "dur": 40/"ts": 210, "dur": -40/' t.json >wrong.json
  run -1 zs-trace wrong.json
  assert_output --partial "wrong.json: 1 event has no time or duration that is one: left out"
  # A point of memory without what it holds, or without a time.
  { echo '{"traceEvents": [{"ph": "i", "name": "[memory]", "ts": 5}, {"name": "[memory]", "args": {"Total Allocated": 3}},'
    event cpu_op x 1 2; echo '{}]}'; } >memory.json
  run -1 zs-trace memory.json
  [[ $output == *"memory.json: event 1 is malformed: left out"*"1 event has no time"* ]] || complain "memory: $output"
  run -2 zs-trace <<<'hello'
  run -1 zs-trace t.json t.json
  assert_output --partial "second trace of rank 3"
  verdict
}

@test "times keep their nanoseconds; --whole_microseconds rounds each event inwards" {
  # Microseconds since 1970, of which a double holds no nanoseconds.
  { echo '{"traceEvents": ['; event kernel gemm 1735632360000100.251 10.503 '"stream": 7, "correlation": 1'
    event kernel gemm 1735632360000110.756 0.25 '"stream": 7, "correlation": 2'; echo '{}]}'; } >t.json
  assert_equal "$(rows temporal t.json | cut -f 2,3,5)" $'10.755\t0.002\t10.753'
  { echo '{"traceEvents": ['; event kernel gemm 100.25 10.5 '"stream": 7, "correlation": 1'; echo '{}]}'; } >t.json
  assert_equal "$(rows temporal t.json | cut -f 2)" 10.5
  assert_equal "$(rows temporal --whole_microseconds t.json | cut -f 2)" 9 # 101 to 110
  # One that begins and ends within a microsecond lasts 0, not -1.
  { echo '{"traceEvents": ['; event kernel short 100.25 0.5 '"stream": 7, "correlation": 1'; event kernel gemm 102.0 9.5 '"stream": 7, "correlation": 2'; echo '{}]}'; } >t.json
  assert_equal "$(rows kernels --whole_microseconds t.json | cut -f 1,3)" $'gemm\t9\nshort\t0'
}

@test "the category alone says which events ran on a device" {
  # ROCm's calls name their stream as a text, Triton's operators as a number.
  { echo '{"traceEvents": ['
    event cuda_runtime hipLaunchKernel 10 5 '"stream": "0x0", "correlation": 1'
    event cpu_op triton_poi_fused 10 90 '"stream": 0, "correlation": 1'
    event kernel gemm 20 7.5 '"stream": 0, "correlation": 1'; echo '{}]}'; } >t.json
  assert_equal "$(rows temporal t.json | cut -f 2,5)" $'7.5\t7.5'
  assert_equal "$(rows kernels t.json | cut -f 1-3)" $'gemm\t1\t7.5'
  # A device's events of a category that zs does not know are a fault, never an idle GPU.
  { echo '{"traceEvents": ['; event cpu_op aten::mm 1 2; event npu_kernel gemm 20 7 '"stream": 3, "correlation": 1'; echo '{}]}'; } >npu.json
  run -1 zs-trace --show temporal npu.json
  assert_output --partial "npu.json: has events of a device, and none that zs-trace counts: their categories are npu_kernel"
}

@test "a table for people has numbers of six digits, its data all" {
  { echo '{"traceEvents": ['; for i in 1 2 4; do event kernel gemm "$((i * 100))" "$((i * i))" "\"stream\": 7, \"correlation\": $i"; done; echo '{}]}'; } >t.json
  assert_equal "$(rows kernels t.json)" $'gemm\t3\t21\t7\t7.937253933193772\t1\t16'
  run -0 zs-trace --show kernels t.json
  assert_line --regexp '^gemm +3 +21 +7 +7.93725 +1 +16$'
}

@test "two published traces: the figures that Holistic Trace Analysis gives" {
  local data=$ROOT/../shared/data/traces
  [ -d "$data" ] || skip "the published traces are not here"
  assert_equal "$(rows temporal "$data/sampled_rank-0.json.gz" | cut -f 2,3,5,7)" $'600058\t321378\t106252\t172428'
  assert_equal "$(rows overlap "$data/sampled_rank-0.json.gz" | cut -f 4)" 11.81
  assert_equal "$(rows idle "$data/sampled_rank-0.json.gz" | head -n 1 | cut -f 2,4,6,8)" $'7\t213825\t1985\t261740'
  run rows queue "$data/sampled_rank-0.json.gz"
  [[ ${lines[0]} == $'0\t7\t1052\t23.619771863'* ]]
  assert_equal "$(rows temporal --whole_microseconds "$data/nccl_data.json.gz" | cut -f 2,3,5,7)" $'435586\t338781\t75169\t21636'
  assert_equal "$(rows overlap --whole_microseconds "$data/nccl_data.json.gz" | cut -f 4)" 14.31
  assert_equal "$(rows idle --whole_microseconds "$data/nccl_data.json.gz" | head -n 1 | cut -f 2,4,6,8)" $'7\t357247\t2155\t0'
}

@test "two ranks have the figures that Holistic Trace Analysis gives for the same files" {
  # tests/peers/trace.py made both; where its package is, make check-peers does it anew.
  run -0 --separate-stderr zs-trace --whole_microseconds --format json --top 0 "$ROOT/tests/data/traces" -o zs.json
  [ -z "$stderr" ] || complain "$stderr"
  run -0 /usr/bin/python3 -I "$ROOT/tests/peers/trace.py" compare "$ROOT/tests/data/traces/hta.json" zs.json
  assert_output "zs-trace: 89 figures beside Holistic Trace Analysis, 0 rows differ"
  verdict
}

@test "a kernel of no duration is nowhere in what ran at once" {
  {
    echo '{"traceEvents": ['
    event kernel gemm 100 0 '"stream": 7, "correlation": 1'
    event kernel ncclDevKernel_AllReduce 150 50 '"stream": 9, "correlation": 2'
    echo '{}]}'
  } >t.json
  assert_equal "$(rows kinds t.json)" $'communication\t50\t100'
}

@test "flight: dumps of two H200 name the rank that did not come, another collective, another size" {
  said() { run -1 zs-trace --flight "$ROOT/tests/data/flight/$1"; }
  said sleeps
  [ "$output" = "rank 1 did not enter collective 3 of default_pg, all_reduce of [1024] Float, in which rank 0 waits at f.py:16: its last is collective 2, all_reduce at f.py:16" ]
  said other
  [ "$output" = "collective 3 of default_pg is all_reduce at f.py:16 on rank 0, and broadcast at f.py:14 on rank 1" ]
  said sizes
  [ "$output" = "collective 3 of default_pg, all_reduce, is of [1024] Float at f.py:16 on rank 0, and of [512] Float at f.py:15 on rank 1" ]
  mkdir alone && cp "$ROOT/tests/data/flight/sleeps/rank_0" alone
  run -1 zs-trace --flight alone
  [[ $output == "rank 1 left no dump, and rank 0 waits in collective 3 of default_pg"* ]]
  head -c 700 "$ROOT/tests/data/flight/sleeps/rank_1" >alone/rank_1
  run -1 --separate-stderr zs-trace --flight alone
  [[ $stderr == *"alone/rank_1"* ]]
  rm alone/*
  run -2 zs-trace --flight alone
}
