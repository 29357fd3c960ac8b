# SPDX-License-Identifier: Apache-2.0
# slurm/compare-revisions.sbatch in a repository whose training is a shell script: its output, its files, and that it does
# not change the user's repository.
setup() {
  load helper
  load drawing
  no_pictures
  mkdir "$BATS_TEST_TMPDIR/a folder" "$BATS_TEST_TMPDIR/tmp" && cd "$BATS_TEST_TMPDIR/a folder"
  export TMPDIR=$BATS_TEST_TMPDIR/tmp GIT_CONFIG_GLOBAL=/dev/null
  export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
  repo="$PWD/a repo"
  git init -q -b main "$repo"
  # Times of 10 ms, and a hundredth of that to and fro from one run to the next, the same for the two of a pair.
  cat >"$repo/train.sh" <<'END'
echo "run: expected_steps=20"
n=$(cat ../n 2>/dev/null || echo 0)
echo $((n + 1)) >../n
for step in {1..20}; do
  echo "Epoch 1, Step $step, Loss: 2.$((99 - step)) sync: True time: 0.$((base + n / 2 % 3 * 10 + (n * 7 + step) % 4)) alloc_mem: 1000000 peak_mem: $((peak))"
done
echo "state_digest: ${digest:-0123456789abcdef0123456789abcdef}"
END
  commit base "base=1000 peak=2000000"
}

# commit TAG SETTINGS: a commit whose training has these variables.
commit() {
  sed -i '/^base=/d' "$repo/train.sh"
  sed -i "1i $2" "$repo/train.sh"
  git -C "$repo" add .
  git -C "$repo" commit -qm "$1"
  git -C "$repo" tag "$1"
}

compare() { bash "$ROOT/slurm/compare-revisions.sbatch" --repo "$repo" --run "bash train.sh" "$@"; }

# What of the repository is the user's: all but what git itself notes of worktrees that come and go.
state() {
  git -C "$repo" --no-optional-locks status --porcelain
  git -C "$repo" for-each-ref
  git -C "$repo" worktree list
  (cd "$repo" && find . -type f ! -path './.git/objects/*' -exec sha256sum {} + | sort)
}

data() { jq -r "$1" out/revision_comparison_data.json; }

@test "revisions: the same twice is 0, with the bits, the files and nothing else left" {
  state >before
  run -0 --separate-stderr compare --revision1 base --revision2 base --runs_per_revision 4 --output_dir out
  [[ ${lines[0]} == "Same or better: base.2 against base.1: identical bits"* ]]
  [[ ${lines[1]} == "report: $PWD/out/revision_comparison_report.html" ]]
  state | diff before -
  [ -z "$(ls -A "$TMPDIR")" ]
  for file in revision_comparison.{h5,png} revision_comparison_data.json revision_comparison_report.{md,html}; do
    [ -s out/$file ] || complain "no $file"
  done
  for k in 1 2 3 4; do
    [ -s out/logs_base.1_run$k/run.log ] && [ -s out/logs_base.2_run$k/run.log ] || complain "no log of run $k"
  done
  [ "$(jq -r '.condition_order[]' out/metadata.json | sed 's/base\.//; s/_run/-/' | xargs)" = "1-1 2-1 2-2 1-2 1-3 2-3 2-4 1-4" ] || complain "not A B B A"
  [ "$(jq -r '[.conditions[] | .commit, .host, .load_before] | map(select(. == null)) | length' out/metadata.json)" = 0 ] || complain "a run without its facts"
  [ "$(data '.comparisons[0].pairs')" = 4 ] || complain "not compared as pairs"
  verdict
}

@test "revisions: slower is 1, within a wider gate 0, and one run each 3" {
  commit slow "base=1050 peak=2000000"
  run -1 --separate-stderr compare --revision1 base --revision2 slow --runs_per_revision 4 --output_dir out
  [[ ${lines[0]} == "Worse or different: slow against base: identical bits"*"slower, beyond the 3 % allowed"* ]]
  [ "$(data '.comparisons[0].time.verdict')" = bad ]
  # The folder is what its metadata says, gate and baseline included.
  run -1 zs-report out -o -
  [[ $output == *'**Worse or different.** `slow` against `base`: **identical bits**'*'slower**, beyond the 3 % allowed.'* ]] || complain "$output"
  run -1 zs-report out
  [[ $output == "Worse or different: out/revision_comparison_report.html, out/revision_comparison_report.md, out/revision_comparison_data.json" ]] || complain "$output"
  grep -qx '# Comparison of slow with base' out/revision_comparison_report.md || complain "$(head -n 1 out/revision_comparison_report.md)"
  run -0 --separate-stderr compare --revision1=base --revision2=slow --runs-per-revision=4 --output-dir=wide --max_slowdown 12%
  run -0 zs-report wide -o -
  run -0 --separate-stderr compare --revision1 slow --revision2 base --runs_per_revision 4 --output_dir back
  [[ ${lines[0]} == *"faster;"* ]]
  run -3 --separate-stderr compare --revision1 base --revision2 slow --runs_per_revision 1 --output_dir one
  [[ ${lines[0]} == "Inconclusive: "* ]]
  run -3 zs-report one -o -
  verdict
}

@test "revisions: other bits are 1 though it is as fast, and so is more memory" {
  commit other "base=1000 peak=2000000 digest=f123456789abcdef0123456789abcdef"
  commit larger "base=1000 peak=2200000"
  run -1 --separate-stderr compare --revision1 base --revision2 other --runs_per_revision 4 --output_dir out
  [[ ${lines[0]} == "Worse or different: other against base: different bits, though the losses are equal at all 20 logged steps. Time: no difference shown"* ]]
  run -1 --separate-stderr compare --revision1 base --revision2 larger --runs_per_revision 4 --output_dir more
  [[ ${lines[0]} == *"Memory: 10 % more memory, beyond the 3 % allowed"* ]]
}

@test "revisions: a second revision that logs fewer steps is worse, one that logs more is not" {
  # A digest of the end would prove that they are equal all the same.
  sed -i '/state_digest/d; /expected_steps/d; s/^for step in .*/for step in $(seq 1 $last); do/' "$repo/train.sh"
  commit long "base=1000 peak=2000000 last=20"
  commit shorter "base=1000 peak=2000000 last=19"
  run -1 --separate-stderr compare --revision1 long --revision2 shorter --runs_per_revision 4 --output_dir out
  [[ ${lines[0]} == "Worse or different: "*"equal losses at the 19 steps that both logged; 1 step is missing"* ]] || complain "$output"
  run -3 --separate-stderr compare --revision1 shorter --revision2 long --runs_per_revision 4 --output_dir more
  verdict
}

@test "revisions: one that does not build is named, and the other's results are kept" {
  echo "exit 7" >"$repo/build.sh"
  commit broken "base=1000 peak=2000000"
  run -1 --separate-stderr compare --revision1 base --revision2 broken --runs_per_revision 2 --output_dir out \
    --build 'if [ -e build.sh ]; then echo no such luck; bash build.sh; fi'
  [[ $stderr == *"broken does not build (exit code 7, see $PWD/out/build_broken.log):"$'\n'"    no such luck"* ]]
  [[ ${lines[0]} == "Worse or different: broken FAILED (does not build: exit code 7, see build_broken.log). " ]]
  [ -s out/logs_base_run2/run.log ]
  [ "$(data '.revisions[] | select(.revision == "base") | .runs[1].status')" = COMPLETE ]
  run -3 --separate-stderr compare --revision1 broken --revision2 base --runs_per_revision 2 --output_dir other \
    --build 'if [ -e build.sh ]; then bash build.sh; fi'
  run -2 --separate-stderr compare --revision1 broken --revision2 broken --output_dir none --build 'bash build.sh'
  [[ $stderr == *"neither revision builds: see $PWD/none" ]]
  [ -z "$(ls -A "$TMPDIR")" ]
}

@test "revisions: one whose training fails is FAILED, and is not tried again and again" {
  commit dies "base=1000 peak=2000000; exit 9"
  run -1 --separate-stderr compare --revision1 base --revision2 dies --runs_per_revision 3 --output_dir out
  [[ ${lines[0]} == "Worse or different: dies FAILED (exit code 9)"* ]]
  [ "$(ls -d out/logs_dies_run*)" = out/logs_dies_run1 ]
  [ -s out/logs_base_run3/run.log ]
}

@test "revisions: the message is the first exception of a rank, not the launcher's output" {
  printf '%s\n' '[rank1]: Traceback (most recent call last):' '[rank1]:   File "train.py", line 9, in <module>' \
    '[rank1]: ValueError: rate is not set' 'mpirun noticed that a process has ended, causing' \
    'the job to be terminated. The first process to do so was:' >"$repo/trace"
  commit raises "base=1000; cat trace; exit 1"
  run -1 --separate-stderr compare --revision1 base --revision2 raises --runs_per_revision 1 --output_dir out
  [[ $stderr == *'(see '*'):'$'\n''    rank 1: ValueError: rate is not set (train.py:9)'$'\n'* ]] || complain "$stderr"
  [[ ${lines[0]} == "Worse or different: raises FAILED (rank 1: ValueError: rate is not set"* ]] || complain "${lines[0]}"
  [[ $stderr != *"The first process"* ]] || complain "$stderr"
  verdict
}

@test "revisions: --probe names the step, parameter and element where tensors part, though every printed loss agrees" {
  # What a training under zs_probe would leave; the values of a step alone where they are asked for.
  sed -i '2a if [[ ${ZS_PROBE:-off} != off ]]; then cp -r "$DATA/$kind" "$ZS_PROBE"; sed -i -E "1s/[0-9a-f]{16}/$(od -An -N8 -tx8 /dev/urandom | tr -d " ")/" "$ZS_PROBE"/rank-0.jsonl; [[ $ZS_PROBE_VALUES ]] || rm "$ZS_PROBE"/*.safetensors; fi' "$repo/train.sh"
  export DATA=$ROOT/tests/data/probe
  commit plain "base=1000 peak=2000000 kind=plain"
  commit planted "base=1000 peak=2000000 kind=fault"
  run -1 --separate-stderr compare --revision1 plain --revision2 planted --runs_per_revision 2 --output_dir out --probe
  headline=$(sed -n 's/^headline: //p' out/probe_comparison.txt)
  [[ $headline == "step 3: gradient of 0.weight"* ]] || complain "$headline"
  [[ $stderr == *"probe: $headline "* ]] || complain "$stderr"
  [[ ${lines[0]} == "Worse or different: $headline. planted against plain: "* ]] || complain "${lines[0]}"
  grep -qF "**$headline.**" out/revision_comparison_report.md || complain "$(head -8 out/revision_comparison_report.md)"
  [ "$(jq -r .probe.headline out/revision_comparison_data.json)" = "$headline" ] || complain "$(jq .probe out/revision_comparison_data.json)"
  grep -qx 'place: \[0, 0\]' out/probe_comparison.txt || complain "$(cat out/probe_comparison.txt)"
  [ -s out/probe_plain.step_3/rank-0.jsonl ] || complain "no second look"
  run -3 --separate-stderr compare --revision1 plain --revision2 plain --runs_per_revision 1 --output_dir none --probe
  [[ $stderr == *"probe: all bits of "*" tensors are the same, over "*" steps"* ]] || complain "$stderr"
  run -3 --separate-stderr compare --revision1 base --revision2 plain --runs_per_revision 1 --output_dir not --probe
  [[ $stderr == *"no probe: base recorded none"*"no optimizer stepped"* ]] || complain "$stderr"
  verdict
}

@test "revisions: names with slashes and leading dashes; uncommitted changes are said and not included" {
  git -C "$repo" branch feature/x base
  git -C "$repo" update-ref refs/heads/-dash base
  echo "exit 5" >"$repo/train.sh"
  git -C "$repo" stash -q
  echo "exit 6" >"$repo/train.sh"
  state >before
  run -0 --separate-stderr compare --revision1 -dash --revision2 feature/x --runs_per_revision 2 --output_dir out --max_slowdown 30
  [[ ${lines[0]} == *"feature/x against -dash: identical bits"* ]]
  [[ $stderr == *"note: uncommitted changes in $repo are in neither revision"* ]]
  grep -q 'had uncommitted changes; they are in neither revision' out/revision_comparison_report.md
  [ -s out/logs_feature_x_run2/run.log ]
  [ -s out/logs__-dash_run2/run.log ]
  state | diff before -
}

@test "revisions: bad input is refused, and nothing is lost" {
  mkdir out && echo precious >out/file
  state >before
  refuses() {
    run -2 --separate-stderr compare "${@:2}"
    [[ $stderr == "compare-revisions.sbatch: "$1 ]] || complain "${*:2}: $stderr"
    [ -z "$output" ] || complain "${*:2}: prints $output"
  }
  refuses "$PWD/a repo has no revision 'nix'" --revision1 nix --revision2 base
  refuses "$PWD/a repo has no revision '--all'" --revision1 base --revision2 --all
  refuses "out exists, and is left as it is:*" --revision1 base --revision2 base --output_dir out
  refuses "--revision1 and --revision2 say what to compare*" --revision1 base
  refuses "--max_slowdown: 'much' is not a share like 3%" --revision1 base --revision2 base --max_slowdown much
  refuses "--runs_per_revision: '0' is not a number of runs" --revision1 base --revision2 base --runs_per_revision 0
  refuses "unknown option '--run_per_revision'*" --run_per_revision 3
  refuses "--revision2 needs a value" --revision1 base --revision2
  refuses "--parse: unmatched quote in 'it's'" --revision1 base --revision2 base --parse "it's"
  refuses "--run: no command" --revision1 base --revision2 base --run ""
  run -2 --separate-stderr bash "$ROOT/slurm/compare-revisions.sbatch" --repo "$repo" --revision1 base --revision2 base
  [[ $stderr == *"'base' has no tools/zs-train.cpp: say with --run how it trains"* ]] || complain "$stderr"
  run -2 --separate-stderr bash "$ROOT/slurm/compare-revisions.sbatch" --repo "$TMPDIR" --revision1 a --revision2 b
  [[ $stderr == "compare-revisions.sbatch: --repo $TMPDIR: not a git repository"* ]] || complain "$stderr"
  run -2 --separate-stderr bash "$ROOT/slurm/compare-revisions.sbatch" --repo none/none --revision1 a --revision2 b
  run -2 --separate-stderr env TMPDIR="$PWD/none" bash "$ROOT/slurm/compare-revisions.sbatch" --repo "$repo" --run true \
    --revision1 base --revision2 base --output_dir here
  [ "$(cat out/file)" = precious ] || complain "lost"
  [ ! -e results ] || complain "made results/"
  state | diff before -
  verdict
}

@test "revisions: a signal ends the training, removes the worktrees and keeps what was done" {
  commit sleeps 'base=1000 peak=2000000; [[ $PWD != *sleeps* ]] || { echo $$ >>"$PIDS"; sleep 3600 & echo $! >>"$PIDS"; wait; }'
  state >before
  two_lines() { [ "$(cat "$1" 2>/dev/null | wc -l)" = 2 ]; }
  for signal in TERM HUP; do
    export PIDS=$PWD/pids.$signal
    bash "$ROOT/slurm/compare-revisions.sbatch" --repo "$repo" --run "bash train.sh" --revision1 base --revision2 sleeps \
      --output_dir out.$signal 2>err &
    compare=$!
    await two_lines "$PIDS"
    [ -n "$(ls -A "$TMPDIR")" ]
    kill -$signal $compare
    wait $compare && status=0 || status=$?
    ((status > 128))
    [ -z "$(ls -A "$TMPDIR")" ]
    # shellcheck disable=SC2046
    none_runs $(cat "$PIDS")
    run -1 pgrep -f -- "--repo $repo .*out.$signal" # nothing of the script is left that would wait out --patience
    [ -s out.$signal/logs_base_run1/run.log ]
    state | diff before -
  done
}

@test "revisions: run from a git hook, within a job by mpirun, with --no_cleanup and with a log format of one's own" {
  sed -i 's/Epoch 1, Step/it/; s/Loss:/L/; s/ sync: True time:/ T/' "$repo/train.sh"
  commit own "base=1000 peak=2000000"
  printf '#!/bin/sh\ntouch "%s/hooked"\n' "$PWD" >"$repo/.git/hooks/post-checkout"
  chmod +x "$repo/.git/hooks/post-checkout"
  export GIT_DIR=$repo/.git GIT_INDEX_FILE=$repo/.git/index SLURM_JOB_ID=1 SLURM_NTASKS=3
  run -0 --separate-stderr compare --revision1 own --revision2 own --runs_per_revision 3 --output_dir out --no_cleanup --local \
    --parse "--pattern 'it (?P<step>\d+), L (?P<loss>\S+) T (?P<iteration_time>\S+)'"
  [[ ${lines[0]} == *"identical bits"*"Time: no difference shown"* ]]
  unset GIT_DIR GIT_INDEX_FILE
  [[ $(jq -r '[.ranks, .conditions[].launch] | unique | join(" ")' out/metadata.json) == "3 mpirun -n 3"* ]]
  [ ! -e hooked ]
  tree=$(sed -n 's/^worktrees: \([^ ]*\) .*/\1/p' <<<"$stderr")
  [ -e "$tree/train.sh" ]
  git -C "$repo" worktree remove --force "$tree"
}

@test "revisions: of zs itself: built by make in the worktree, trained as tiny, a unit in the last place found" {
  mkdir "$repo/tools"
  echo "// zs" >"$repo/tools/zs-train.cpp"
  printf 'build/zs-train: trainer\n\tmkdir -p build && cp $< $@\n' >"$repo/Makefile"
  printf '%s\n' '#!/bin/bash' '((${OMPI_COMM_WORLD_RANK:-0} == 0)) || exit 0' 'echo "run: expected_steps=2"' \
    'echo "Epoch 1, Step 1, Loss: 2.5 sync: True time: 0.1 alloc_mem: 1 peak_mem: 2"' \
    'echo "Epoch 1, Step 2, Loss: $loss sync: True time: 0.1 alloc_mem: 1 peak_mem: 2"' \
    'mkdir -p "$ZS_REGISTRY/$1"' >"$repo/trainer"
  chmod +x "$repo/trainer"
  sed -i '2i loss=2.4' "$repo/trainer"
  commit one "base=1"
  sed -i 's/^loss=2.4/loss=2.4000000000000004/' "$repo/trainer"
  commit two "base=1"
  run -1 --separate-stderr bash "$ROOT/slurm/compare-revisions.sbatch" --repo "$repo" --revision1 one --revision2 two \
    --runs_per_revision 2 --warmup 0 --output_dir out
  [[ ${lines[0]} == "Worse or different: two against one: different from step 2: losses differ by up to 4.44"* ]]
  [ "$(data '.comparisons[0].numerics.from_step')" = 2 ]
  [ "$(jq -r '[.conditions[].command] | unique[]' out/metadata.json)" = \
    '$ZS_LAUNCH build/zs-train --model_name tiny --batch_size 4 --seq_length 64 --max_steps 100 --log_interval 1' ]
  [ -d out/logs_two_run2/saved_models/--model_name ]
  grep -q 'cp trainer build/zs-train' out/build_one.log
}

@test "revisions: a training that writes nothing more is ended after --patience, and said with its last line" {
  commit silent "trap '' TERM; base=1000 peak=2000000"
  printf 'sleep 600\n' >>"$repo/train.sh"
  git -C "$repo" commit -qam sleeps
  git -C "$repo" tag -f silent
  begin=$SECONDS
  run -1 --separate-stderr compare --revision1 base --revision2 silent --runs_per_revision 2 --output_dir out --patience 2
  ((SECONDS - begin < 60)) || complain "it took $((SECONDS - begin)) s"
  [[ $stderr == *"no line for 2 s: ended (--patience). Its last line: state_digest: "* ]] || complain "$stderr"
  [[ $output == *"silent FAILED (no line for 2 s: ended (--patience))"* ]] || complain "$output"
  run -2 --separate-stderr compare --revision1 base --revision2 silent --patience long
  verdict
}

@test "revisions: what watches for a silent training ends with it, also if a signal came as it started" {
  # shellcheck source=/dev/null
  source "$ROOT/slurm/launch.bash"
  touch log
  patience=1800
  sleep 0.3 &
  end_silent $! log 3>&- &
  wait %1
  begin=$SECONDS
  await none_runs $!
  ((SECONDS - begin < 60))  # it looks at the output every 180 s
}

@test "scripts: what a script does at its end none of its children does, however early it is killed" {
  cat >ends <<'SH'
source "$ROOT/slurm/launch.bash"
at_end 'echo "$BASHPID ends with $ended_with"'
for _ in {1..50}; do
  read -r -t 9 <> <(:) &
  kill $!
  wait $! || true
done
exit 3
SH
  run -3 --separate-stderr bash ends
  [[ ${#lines[@]} = 1 && $output == *' ends with 3' ]] || complain "$output"
  # Nothing else runs a command at the end of a script that starts others.
  run -0 grep -n 'trap [^-].* EXIT' "$ROOT"/slurm/*.bash "$ROOT"/slurm/*.sbatch
  [[ ${#lines[@]} = 1 && $output == */launch.bash:* ]] || complain "$output"
  verdict
}

@test "revisions: git bisect run, as the guide writes it, finds the commit that needs more memory" {
  commit same "base=1000 peak=2000000 # same"
  commit worse "base=1000 peak=3000000"
  commit after "base=1000 peak=3000000 # after"
  line=$(sed -n '/^git bisect run /,/^```/{s/^git bisect run //;/^```/!p}' "$ROOT/docs/experiments.md")
  line=${line//\~\/zs/$ROOT}
  line=${line/GOOD/base}
  line=${line/--output_dir/--run \"bash train.sh\" --runs_per_revision 2 --output_dir}
  cd "$repo"
  git bisect start HEAD base >/dev/null
  run -0 bash -c "git bisect run $line"
  [[ $output == *"$(git rev-parse worse) is the first bad commit"* ]] || complain "$output"
}
