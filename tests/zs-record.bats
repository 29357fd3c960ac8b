# SPDX-License-Identifier: Apache-2.0
# zs-record: records any training as a run of the registry. The trainings are short Python and shell scripts.
setup() {
  load helper
  bats_load_library bats-support
  bats_load_library bats-assert
  cd "$BATS_TEST_TMPDIR"
  export ZS_REGISTRY=$PWD/runs ZS_MARK=$BATS_TEST_TMPDIR
  unset ZS_RUN
}

# the_run: the folder of the only run.
the_run() {
  local folders=(runs/2*)
  ((${#folders[@]} == 1)) || { echo "runs: ${folders[*]}" >&2; return 1; }
  echo "${folders[0]}"
}

# field NAME: of the only run, as zs-runs says it.
field() { zs-runs --show "$1" --format tsv | sed 1d; }

# trainer: a Python training that prints zs's own lines.
trainer() {
  cat >train.py <<'PY'
import argparse, sys, time
p = argparse.ArgumentParser()
p.add_argument("--lr", type=float, default=1e-3)
p.add_argument("--steps", type=int, default=5)
p.add_argument("--fail_at", type=int, default=-1)
p.add_argument("--config")
a = p.parse_args()
for step in range(1, a.steps + 1):
    if step == a.fail_at: raise ValueError(f"bad batch at step {step}")
    print(f"Epoch 1, Step {step}, Loss: {5 / step} sync: True time: 0.01 alloc_mem: 100 peak_mem: {200 + step}", flush=True)
PY
}

@test "zs-record: the output passes unchanged; the run has metrics, settings and an end" {
  trainer
  python3 train.py --lr 0.01 >plain
  zs-record --name first -- python3 train.py --lr 0.01 >out 2>err
  cmp plain out
  cmp plain "$(the_run)/run.log"
  [ "$(field state)" = COMPLETE ]
  [ "$(field run_name)" = first ]
  [ "$(field training.learning_rate)" = 0.01 ]
  [ "$(field final_train_loss)" = 1 ]
  [ "$(field steps)" = 5 ]
  [ "$(field exit_code)" = 0 ]
  [ "$(field peak_memory)" = 205 ]
  [ "$(field python)" = "$(python3 -c 'import sys; print(sys.version.split()[0])')" ]
  [ "$(field packages)" = "$(sha256sum <"$(the_run)/packages.txt" | cut -d' ' -f1)" ]
  zs-parse plain | grep -v '^#' | cut -f 2-4 | sed 's/\.0$//' >expected
  zs-parse "$(the_run)" | grep -v '^#' | cut -f 2-4 >recorded
  diff expected recorded
  grep -q '^zs-record: run .*/runs/2' err
  grep -q '^zs-record: COMPLETE after .*, step 5, loss 1: ' err
  [ "$(zs-runs --show final_train_step --format tsv | sed 1d)" = 5 ]
  # A last value is of its own step.
  zs-record -- sh -c 'for i in 1 2 3 4; do echo "{\"step\": $i, \"loss\": $i}"; done; echo "{\"step\": 6, \"grad_norm\": 1}"' 2>err >out
  grep -q '^zs-record: COMPLETE after .*, step 6, loss 4 at step 4: ' err || complain "$(cat err)"
  verdict
}

@test "zs-record: the exit status is the command's; the record has the reason of a failure" {
  trainer
  run -3 zs-record --name three -- sh -c 'exit 3'
  run -137 zs-record --name killed -- sh -c 'kill -9 $$'
  run -1 zs-record --name raised -- python3 train.py --fail_at 3
  zs-runs --show run_name state exit_code error --format tsv | sed 1d >table
  diff - table <<END
three	FAILED	3	exit code 3
killed	FAILED	137	ended by SIGKILL
raised	FAILED	1	ValueError: bad batch at step 3
END
  zs-runs --filter run_name=raised --show basis | grep -q 'bad batch at step 3, exit code 1, 2'
}

@test "zs-record: a run name with a slash works in each tool" {
  run -0 zs-record --name team/four -- echo 'step 1 loss 2'
  run -0 zs-parse team/four
  assert_line --partial ' run_name=team/four'
  run -2 zs-parse team/five
  assert_output --partial "team/five: No such file or directory"
}

@test "zs-record: an error about options is the reason of a failure" {
  cat >train.py <<'END'
import argparse
parser = argparse.ArgumentParser(prog="train.py")
for name in "batch_size", "model_name", "weight_decay", "warmup_steps", "output_dir":
    parser.add_argument("--" + name)
parser.add_argument("--lr", type=float)
parser.parse_args()
END
  run -2 zs-record -- python3 train.py --lr fast
  [ "$(field error)" = "train.py: error: argument --lr: invalid float value: 'fast'" ]
  zs-runs --status --show basis | grep -qF "error: argument --lr: invalid float value: 'fast', exit code 2, "
  rm -rf runs
  # Which lines were taken, zs-parse tells; here it would stand among the training's own words.
  run -0 --separate-stderr zs-record -- sh -c 'echo step 1 loss 2; echo step 2 loss 1'
  [[ $stderr != *dialect* ]]
  rm -rf runs
  # Lines alike without a usage are the training's own.
  run -0 zs-record -- sh -c 'echo step 1 loss 2; echo "retry: error: connection"; echo step 2 loss 1'
  [ -z "$(zs-runs show "$(zs-runs --show run_id --format tsv | tail -n 1)" | grep -P '^\S*\terror\t')" ]
}

@test "zs-record: the first error is recorded with its rank" {
  cat >log <<'END'
[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 3, in <module>
[rank1]: RuntimeError: bad gradient
E1122 10:00:00.000000 1 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1)
Root Cause (first observed failure):
[0]:
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 7)
END
  run -1 zs-record -- sh -c 'cat log; exit 1'
  [ "$(field error_rank)" = 1 ]
  [ "$(field error)" = "rank 1: RuntimeError: bad gradient" ]
  rm -rf runs
  # A rank that a signal ended has no traceback: torchrun's summary tells.
  run -1 zs-record -- sh -c 'tail -n 4 log; exit 1'
  [ "$(field error_rank)" = 1 ]
}

@test "zs-record: a missing command is status 127 without a run; one that cannot start is 126 and a failed run" {
  run -127 --separate-stderr zs-record -- no-such-command
  [ "$stderr" = "zs-record: no-such-command: there is no such command" ]
  [ ! -e runs ]
  touch data
  run -126 --separate-stderr zs-record -- ./data
  [ "$(field state)" = FAILED ]
  refuses_with "zs-record: expected -- COMMAND..., the training to run (see zs-record --help)" zs-record --name x
}

@test "zs-record: stdout and stderr stay separate; if they are one file, lines keep their order" {
  zs-record -- sh -c 'echo out; echo err >&2' >out 2>err
  [ "$(cat out)" = out ]
  grep -qx err err
  rm -rf runs
  zs-record -- sh -c 'for i in 1 2 3 4 5 6 7 8 9; do echo $i; echo $i >&2; done' >both 2>&1
  [ "$(grep -v zs-record both | xargs)" = "1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 9 9" ]
}

@test "zs-record: on a terminal the command gets a terminal of the same size, and its bytes pass unchanged" {
  command -v script >/dev/null || no_package bsdutils
  # A terminal of 33 rows and 77 columns.
  script -qec "stty rows 33 cols 77; zs-record -- sh -c 'test -t 1 && test -t 2 && echo tty; stty size <&1; printf \"a\\rb\\n\"'" /dev/null >seen
  grep -q tty seen
  grep -q '33 77' seen
  [ "$(tail -n 1 "$(the_run)/run.log" | od -An -tx1 | tr -d ' \n')" = 610d620a ]
  run -0 bash -c 'zs-record -- sh -c "test ! -t 1" 2>/dev/null | cat; exit "${PIPESTATUS[0]}"'
}

@test "zs-record: the command reads stdin" {
  [ "$(echo hello | zs-record -- cat 2>err)" = hello ]
}

@test "zs-record: signals go to the command" {
  cat >wait.py <<'PY'
import signal, sys, time
def heed(number, frame):
    print("got", signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM: sys.exit(9)
for each in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGINT): signal.signal(each, heed)
print("ready", flush=True)
while True: time.sleep(0.1)
PY
  zs-record -- python3 wait.py >out 2>err &
  recorder=$!
  await grep -q ready out
  for signal in USR1 USR2 INT TERM; do
    kill -$signal $recorder
    await grep -q "got SIG$signal" out
  done
  status=0
  wait $recorder || status=$?
  [ $status = 9 ]
  [ "$(field exit_code)" = 9 ]
}

# Whether the metrics of the only run have two records.
two_records() { compgen -G 'runs/2*/metrics.h5' >/dev/null && [ "$(zs-parse runs/2* | grep -c $'^2.*\t')" = 2 ]; }

@test "zs-record: a running command has the state RUNNING, and its metrics can be read" {
  mkfifo go
  zs-record -- sh -c 'echo step 1 loss 2.5; echo step 2 loss 2.25; read x <go' >out 2>err &
  await two_records
  [ "$(field state)" = RUNNING ]
  run -2 --separate-stderr env ZS_RUN="$PWD/$(the_run)" zs-record -- true
  [[ $stderr == *"is being trained by process"* ]]
  echo >go
  wait
  [ "$(field state)" = COMPLETE ]
}

@test "zs-record: after kill -9 of zs-record the command ends, the run is FAILED and has its metrics" {
  zs-record -- sh -c 'echo step 1 loss 2.5; echo step 2 loss 2.25; exec sleep 1000' >out 2>err &
  recorder=$!
  await two_records
  kill -9 $recorder
  wait $recorder || true
  gone() { [ -z "$(marked sleep)" ]; }
  await gone
  [ "$(field state)" = FAILED ]
  [ "$(field basis)" = "its process on this host is gone, 2 steps in the metrics" ]
}

@test "zs-record: binary output, a missing line end and empty output are recorded byte for byte" {
  head -c 300000 /dev/urandom >bytes
  zs-record --name binary -- cat bytes >out 2>err
  cmp bytes out
  cmp bytes runs/2*/run.log
  rm -rf runs
  [ "$(zs-record -- printf 'step 1 loss 0.5\nno end' 2>err)" = $'step 1 loss 0.5\nno end' ]
  [ "$(field final_train_loss)" = 0.5 ]
  rm -rf runs
  run -0 --separate-stderr zs-record -- true
  [ -z "$output" ]
  [ "$(field state)" = COMPLETE ]
  [ "$(field basis)" = "exit code 0, 0 steps in the metrics" ]
}

@test "zs-record: a closed pipe or a full device does not end the training" {
  zs-record -- sh -c 'for i in $(seq 2000); do echo "step $i loss 1.$i"; done' 2>err | head -n 1 >out
  [ "$(cat out)" = "step 1 loss 1.1" ]
  await grep -q COMPLETE err
  [ "$(field steps)" = 2000 ]
  rm -rf runs
  run -0 bash -c 'zs-record -- echo step 1 loss 2 2>err >/dev/full'
  grep -q 'stdout: No space left on device' err
  [ "$(field final_train_loss)" = 2 ]
}

@test "zs-record: a log that cannot grow is reported once and does not end the command" {
  # No file of zs-record may be larger than 64 blocks of 1 KB.
  run -0 bash -c 'ulimit -f 64; zs-record -- seq -f "step %.0f loss 2.5" 9000 2>err | wc -l >count; exit "${PIPESTATUS[0]}"'
  [ "$(cat count)" = 9000 ]
  [ "$(grep -c 'run.log: write: File too large' err)" = 1 ]
  [ "$(field state)" = COMPLETE ]
  [ "$(field log_bytes_lost)" -gt 50000 ]
}

@test "zs-record: the configuration comes from the command line, from files on it, and from --set" {
  trainer
  printf '{"zero_optimization": {"stage": 2}, "optimizer": {"params": {"eps": 1e-7}}}' >ds.json
  printf 'model:\n  width: 64\nseed: 7\n' >mine.yaml
  zs-record --config mine.yaml --set note=tried hf_token=abcdefg -- python3 train.py --lr 0.5 --config ds.json >out 2>err
  [ "$(field zero.stage)" = 2 ]
  [ "$(field training.epsilon)" = 1e-7 ]
  [ "$(field training.learning_rate)" = 0.5 ]
  [ "$(field model.width)" = 64 ]
  [ "$(field note)" = tried ]
  refute grep -rq abcdefg runs
  refuses_with "zs-record: no.yaml: No such file or directory" zs-record --config no.yaml -- true
}

@test "zs-record: the git revision and the changes since it are recorded" {
  git init -q code
  cd code
  git config user.email a@b.c
  git config user.name n
  echo one >file
  git add file
  git commit -qm first
  echo two >file
  zs-record -- true 2>err
  cd ..
  [ "$(field commit)" = "$(git -C code rev-parse HEAD)" ]
  grep -q '^+two$' "$(the_run)/revision.diff"
  [ "$(field git_diff)" = "$(sha256sum <"$(the_run)/revision.diff" | cut -d' ' -f1)" ]
}

@test "zs-record: the metrics have the columns of TensorBoard's and W&B's files" {
  events=$(find "$ROOT/tests/data/trackers" -name '*.tfevents.*' | sort | head -n 1)
  [ -n "$events" ]
  cp "$events" .
  # The command has the file open until zs-record has seen it.
  mkfifo seen
  zs-record -- sh -c 'exec cat seen 3<"$1"' sh "${events##*/}" >out 2>err 3>&- &
  recorder=$!
  has_columns() { [[ -e $(the_run)/metrics.h5 ]] && zs-parse "$(the_run)" | grep -q '^[^#]'; }
  await has_columns
  echo >seen
  wait $recorder
  zs-parse "${events##*/}" | grep -v '^#' | head -n 1 | tr '\t' '\n' | grep -vx -e run -e line -e part | sort >expected
  zs-parse "$(the_run)" | grep -v '^#' | head -n 1 | tr '\t' '\n' | sort >recorded
  [ -s expected ]
  [ -z "$(comm -23 expected recorded)" ]
}

# fails LINE...: a rank that is killed, after the kernel has said these lines of it (recorded of process 17743).
fails() {
  : >kernel
  printf '%s\n' "$@" >lines
  cat >killed.py <<'PY'
import os, signal, time
print("step 1 loss 2.5", flush=True)
while not os.path.exists("known"): time.sleep(0.1)
with open("lines") as lines, open("kernel", "a") as kernel:
    kernel.write(lines.read().replace("17743", str(os.getpid())))
os.kill(os.getpid(), signal.SIGKILL)
PY
  ZS_KERNEL_LOG=$PWD/kernel RANK=1 WORLD_SIZE=2 zs-record -- python3 killed.py >out 2>err &
  recorder=$!
  await compgen -G 'runs/2*/metrics.h5' >/dev/null
  touch known
  status=0
  wait $recorder || status=$?
  [ $status = 137 ]
}

@test "zs-record: messages of the kernel explain a failure: ranks killed for memory, errors of GPUs" {
  # Recorded from Linux 6.18, of a process that grew beyond its control group's memory.
  fails "$(cat "$ROOT/tests/data/kernel/oom.txt")"
  grep -E 'FAILED \(ended by SIGKILL; out of memory: the kernel killed rank 1 \(process [0-9]+, python3\), which held 104.46 MB\)' err
  [[ $(field error) == "ended by SIGKILL; out of memory: the kernel killed rank 1 (process "* ]]
  rm -rf runs known
  # As NVIDIA's driver writes it: open-gpu-kernel-modules 1150, gpud 1209.
  fails 'kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=17743, name=python3, Ch 00000001 caused by previous Xid 149' \
    'kernel: NVRM: Xid (PCI:0000:44:00): 79, GPU has fallen off the bus.'
  grep -E 'ended by SIGKILL; GPU 0000:dc:00 had Xid 45 under rank 1 \(process [0-9]+, python3\): Ch 00000001 .*; GPU 0000:44:00 had Xid 79: GPU has fallen' err
  rm -rf runs known
  # What it said before the training, and of others, is not said; nor is a log missed that cannot be read.
  fails 'Out of memory: Killed process 1 (init) total-vm:1kB, anon-rss:1kB'
  [ "$(field error)" = "ended by SIGKILL" ]
  rm -rf runs
  run -137 env ZS_KERNEL_LOG=/no/such zs-record -- sh -c 'kill -9 $$'
  [ "$(field error)" = "ended by SIGKILL" ]
}

@test "zs-record: if NCCL's time limit ends a training, its dumps name the rank that was behind" {
  cat >late.sh <<'SH'
echo step 1 loss 2.5
cp "$1"/rank_* "$ZS_RECORD/flight/"
echo '[rank0]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=15000) ran for 15021 milliseconds before timing out.' >&2
kill -ABRT $$
SH
  run -134 zs-record --timeout 600 -- sh late.sh "$ROOT/tests/data/flight/sleeps"
  [ "$(field error_rank)" = 0 ]
  [[ $(field error) == "rank 0: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, "*"; rank 1 did not enter collective "* ]]
}

# A table of the faults that trainings have: what state says, and what the error is. Others are above: kill -9 of zs-record, a full
# device, nothing printed, a loss that is not finite, a process left behind.
@test "zs-record: each kind of failure has its state" {
  cat >two.py <<'PY'
import os, sys, time
how = sys.argv[1]
if how == "import": import no_such_module
if how == "group": os.setpgid(0, 0)
if how == "session": os.setsid() if os.fork() == 0 else os.wait()
if how == "daemon":
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.dup2(os.open(os.devnull, os.O_RDWR), 1), os.dup2(1, 2)
            time.sleep(30)
        os._exit(0)
for step in range(1, 5):
    if how == "rank" and step == 3:
        sys.stderr.write('[rank1]: Traceback (most recent call last):\n[rank1]:   File "train.py", line 9, in <module>\n[rank1]: ValueError: bad batch\n')
        sys.exit(1)
    print(f"Epoch 1, Step {step}, Loss: {'nan' if how == 'nan' else 5 / step} sync: True time: 0.01 alloc_mem: 1 peak_mem: 1", flush=True)
PY
  local how status state steps error
  while IFS='|' read -r how status state steps error; do
    rm -rf runs
    timeout "$HANG" zs-record -- python3 two.py "$how" >out 2>err </dev/null && found=0 || found=$?
    [[ "$found|$(field state)|$(field steps)" == "$status|$state|$steps" ]] || complain "$how: $found, $(field state), $(field steps)"
    [[ $(field error 2>/dev/null) == "$error" ]] || complain "$how: $(field error)"
  done <<'END'
import|1|FAILED|0|ModuleNotFoundError: No module named 'no_such_module'
rank|1|FAILED|2|rank 1: ValueError: bad batch
group|0|COMPLETE|4|
session|0|COMPLETE|4|
daemon|0|COMPLETE|4|
nan|0|DIVERGED|4|the loss is nan at the end
END
  verdict
}

@test "zs-record: a training that ignores SIGTERM runs until SIGKILL, which is the reason in its record" {
  zs-record -- sh -c 'trap "" TERM; echo ready; while :; do sleep 0.1; done' >out 2>err &
  recorder=$!
  await grep -q ready out
  kill -TERM $recorder
  sleep 1
  kill -0 $recorder
  pkill -KILL -P $recorder
  status=0
  wait $recorder || status=$?
  [ $status = 137 ]
  [ "$(field state)" = FAILED ]
  [ "$(field error)" = "ended by SIGKILL" ]
}

@test "zs-record: a gigabyte of output passes in little memory" {
  cat >loud.sh <<'SH'
echo step 1 loss 2
yes 'a line that says nothing of a training' | head -c 1000000000
echo
echo step 2 loss 1
SH
  bash -c 'ulimit -v 600000; exec zs-record -- sh loud.sh' 2>err >out
  [ "$(stat -c %s out)" = 1000000029 ]
  cmp out runs/2*/run.log
  rm out runs/2*/run.log
  [ "$(field steps)" = 2 ]
}

@test "zs-record: what it says of a run in the output of a job is no line of the training" {
  zs-record -- sh -c 'for i in 1 2; do echo "step $i | loss 2.$i"; done' >job.out 2>&1
  grep -q '^zs-record: COMPLETE .*step 2, loss 2.2: ' job.out
  run -0 --separate-stderr zs-parse job.out
  [[ $stderr != *malformed* && $(grep -c '^job' <<<"$output") = 2 ]]
}

@test "hang: the rank and its position are reported; then the training ends, or zs-record waits" {
  # Something is printed until every rank is where it waits: the time limit begins there, however slowly Python starts.
  cat >hangs.py <<'PY'
import os, time
rank, hang = int(os.environ["RANK"]), os.environ["ZS_RECORD"] + "/hang.txt"
def load_batch(step):
    while step == 3 and rank == 1 and not ("SHORT" in os.environ and os.path.exists(hang)): open("there1", "w").close(), time.sleep(0.1)
for step in range(1, 5):
    load_batch(step)
    if rank == 0: print(f"step {step} loss {1 / step}", flush=True)
    while rank == 0 and step == 2: open("there0", "w").close(), time.sleep(0.1)
PY
  until='until [[ -e there1 && ( -e there0 || -n ${SHORT-} ) ]]; do echo begins; sleep 0.1; done &'
  two='for rank in 0 1; do RANK=$rank WORLD_SIZE=2 python3 hangs.py & done; wait'
  timeout "$HANG" zs-record --timeout 2 -- bash -c "$until $two" >out 2>err && code=0 || code=$?
  [ "$code" = 143 ]
  grep 'nothing printed for .*: rank 0 is at hangs.py:8, rank 1 at hangs.py:4 in load_batch; it is ended' err
  grep -q 'in load_batch' "$(the_run)/hang.txt"
  [ "$(field state)" = FAILED ]
  [[ $(field hang) == *"rank 1 at hangs.py:4 in load_batch" ]]
  rm -r runs there?
  # Ended, it has failed, though the launcher says 0.
  run -143 timeout "$HANG" zs-record --timeout 2 -- bash -c 'trap "exit 0" TERM; sleep 900 & wait'
  [[ $(field state)/$(field exit_code) = FAILED/143 ]]
  rm -r runs
  # A rank that answers no more is told by its state.
  SHORT=1 zs-record --timeout 2 -- bash -c "$until"' RANK=0 WORLD_SIZE=1 python3 -c "import os, signal; open(\"there1\", \"w\").write(str(os.getpid())), os.kill(os.getpid(), signal.SIGSTOP)"; true' >out 2>err && code=0 || code=$?
  grep 'rank 0 does not answer: it is stopped by a signal' err
  for _ in {1..100}; do [[ -e /proc/$(cat there1) ]] && sleep 0.1 || break; done
  [ ! -e "/proc/$(cat there1)" ] # it does not outlive its launcher
  rm -r runs there?
  # With --on_hang wait nothing is ended.
  SHORT=1 timeout "$HANG" zs-record --timeout 2 --on_hang wait -- bash -c "$until"' RANK=1 WORLD_SIZE=2 python3 hangs.py' >out 2>err
  grep 'rank 1 is at hangs.py:4 in load_batch' err
  [ "$(field state)" = COMPLETE ]
}

@test "zs-record: a log that repeats one step takes linear time, and zs-runs does not read it again" {
  local number
  yes 'step 1 loss 1.5' | head -n 20000 >20000.log
  zs-parse 20000.log 2>/dev/null >records
  run -0 bash -c 'ulimit -v 400000; zs-aggregate records >/dev/null'
  # Killed, while it has written much: its file says how far it is.
  timeout -s KILL 4 zs-record --name endless -- yes 'step 1 loss 1.5' >/dev/null 2>&1 || true
  for ((number = 0; number < 50; number++)); do [[ ! -s $(the_run)/metrics.h5 ]] || break; sleep 0.1; done
  [ -s "$(the_run)/metrics.h5" ]
  run -0 timeout 10 bash -c 'ulimit -v 4000000; zs-runs --status --show state steps --format tsv'
  [ "${lines[1]}" = $'FAILED\t1' ]
}

@test "zs-record: removing the run's folder ends the record, not the training" {
  zs-record -- bash -c 'echo step 1 loss 2; rm -r "$ZS_RECORD"; for i in 2 3 4 5; do sleep 0.7; echo step $i loss 1; done; exit 7' >out 2>err || status=$?
  [ "$status" = 7 ]
  [ "$(grep -c ^step out)" = 5 ]
  grep -q 'was removed.*: the command continues, without a record' err
}

@test "zs-record: a name has at most 255 letters" {
  refuses_with "zs-record: a run's name has at most 255 letters, not 100000" zs-record --name "$(head -c 100000 /dev/zero | tr '\0' x)" -- true
  [ ! -e runs ]
}

@test "zs-record: the last value of an unknown column is a metric of the run" {
  echo 'for s in range(1, 6): print(f"step {s} loss {5 / s:.4f} my_metric {s * 1.5}", flush=True)' >train.py
  zs-record --name one -- python3 train.py >/dev/null
  sed -i 's/1\.5/1.75/' train.py
  zs-record --name two -- python3 train.py >/dev/null
  [ "$(zs-runs --show run_name my_metric --sort_by my_metric --descending --format tsv)" = $'run_name\tlast.my_metric\ntwo\t8.75\none\t7.5' ]
  [ "$(zs-runs --filter 'my_metric>8' --show run_name --format tsv | sed 1d)" = two ]
  run zs-runs diff one two
  [[ $output != *"differ in"*my_metric* ]] || complain "$output"
}
