# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2317
# Sourced by compare-revisions.sbatch, after launch.bash: builds two revisions of a repository in separate worktrees,
# trains with them in alternation, and compares them. The numbers 0 and 1 name the two revisions.
# (shellcheck does not see what the script that sources this sets, nor what traps call.)

# ours ARGUMENT...: git in the repository; it runs no hook of the user's and does not refresh their index.
ours() { git --no-optional-locks -C "$repo" -c core.hooksPath=/dev/null "$@"; }

# label REVISION: sets `label`, the revision as part of a file's name.
label() {
  label=${1//[^A-Za-z0-9._+-]/_}
  label=${label:0:100}
  [[ $label != [.-]* ]] || label=_$label
}

# begin_comparison: finds the repository and the commits, makes the output folder, and sees to it that whatever ends
# this script ends its programs and removes its worktrees too. Sets `output`, and of each revision its name in the report,
# its label in names of files, its commit and the commit's subject.
begin_comparison() {
  local tool i variable words
  at_end clean
  for tool in zs-parse zs-aggregate zs-report zs-runs ${probe:+zs-verify} git setsid; do
    command -v "$tool" >/dev/null || die "$tool is not on PATH: make deps installs what is missing, make builds the tools"
  done
  # In a hook these name another repository, or the user's index.
  for variable in $(git rev-parse --local-env-vars); do unset "$variable"; done
  [[ -n $repo || -e $here/../.git ]] || die "this installation is not a git repository: name one with --repo"
  repo=$(realpath -m -- "${repo:-$here/..}")
  words=$(ours rev-parse --git-dir 2>&1) || die "--repo $repo: ${words#fatal: }"
  revisions=("$revision1" "$revision2") commits=() subjects=() labels=() trees=() failed=('' '') late=()
  for i in 0 1; do
    # The same word is the same commit, even if a branch moves this moment.
    ((i == 1)) && [[ $revision1 == "$revision2" ]] && commits+=("${commits[0]}") ||
      commits+=("$(ours rev-parse --verify --quiet --end-of-options "${revisions[i]}^{commit}")") ||
      die "$repo has no revision '${revisions[i]}'"
    label "${revisions[i]}"
    labels+=("$label")
    subjects+=("$(ours log -1 --format=%s "${commits[i]}")")
  done
  names=("${revisions[@]}")
  if [[ ${names[0]} == "${names[1]}" ]]; then names=("${names[0]}.1" "${names[1]}.2"); fi
  if [[ ${labels[0]} == "${labels[1]}" ]]; then labels=("${labels[0]}.1" "${labels[1]}.2"); fi
  default_commands
  parse_words=()
  words=$(xargs -r printf '%s\n' <<<"$parse" 2>/dev/null) || die "--parse: unmatched quote in '$parse'"
  [[ -z $words ]] || mapfile -t parse_words <<<"$words"
  [[ -z $local ]] || leave_job
  [[ $given != *" run "* ]] || foreign=1
  plan_launch

  if [[ -z $output ]]; then
    new_folder "$PWD/results" revision_comparison
    output=$folder
  else
    [[ ! -e $output && ! -L $output ]] || die "$output exists, and is left as it is: name another folder with --output_dir"
    mkdir -p -- "$output" || die "cannot make the folder $output"
    output=$(realpath -- "$output")
  fi
  for i in "INT 130" "TERM 143" "HUP 129" "QUIT 131" "USR1 138"; do
    # shellcheck disable=SC2086,SC2064 # both words, now
    trap "stop $i" ${i% *}
  done
  work=$output/.worktrees
  if ((${SLURM_JOB_NUM_NODES:-1} > 1)); then
    mkdir "$work" || die "cannot write $output"
  else
    work=$(mktemp -d "${TMPDIR:-/tmp}/zs-revisions.XXXXXX") || die "cannot make a folder in ${TMPDIR:-/tmp}"
  fi
  if [[ -n ${foreign-} ]]; then
    # Where all nodes find it; this checkout may change meanwhile.
    { mkdir "$work/bin" && cp "$here/as-rank" "$work/bin"; } || die "cannot write $work"
    PATH=$work/bin:$PATH
    launch+=(as-rank)
  fi
  write_plan
  if [[ $(ours rev-parse --is-inside-work-tree 2>/dev/null) == true &&
    -n $(ours status --porcelain --untracked-files=no) ]]; then
    say "note: uncommitted changes in $repo are in neither revision"
    zs-runs update "$output" "uncommitted_changes=not included" || die "cannot write $output"
  fi
}

# default_commands: what --build, --run and --test_config are where they were not given.
default_commands() {
  local i
  if [[ $given != *" run "* ]]; then
    for i in 0 1; do
      ours cat-file -e "${commits[i]}:tools/zs-train.cpp" 2>/dev/null ||
        die "'${revisions[i]}' has no tools/zs-train.cpp: say with --run how it trains, and with --build how it is built"
    done
    # The words are for the shell that runs them.
    # shellcheck disable=SC2016
    run='$ZS_LAUNCH build/zs-train'
    [[ $given == *" build "* ]] || build="make -j$(nproc) build/zs-train"
    [[ $given == *" test_config "* ]] ||
      test_config='--model_name tiny --batch_size 4 --seq_length 64 --max_steps 100 --log_interval 1'
  fi
  [[ -n ${run//[[:space:]]/} ]] || die "--run: no command"
}

# leave_job: as if this were no Slurm job.
leave_job() {
  local variable
  export ZS_RANKS=${ZS_RANKS:-${SLURM_NTASKS:-2}}
  for variable in "${!SLURM_@}"; do unset "$variable"; done
}

# write_plan: metadata.json before there is any result.
write_plan() {
  local i facts=()
  for i in 0 1; do
    facts+=("revision$((i + 1)).name=${names[i]}" "revision$((i + 1)).given=${revisions[i]}"
      "revision$((i + 1)).commit=${commits[i]}" "revision$((i + 1)).subject=${subjects[i]}")
  done
  zs-runs plan "experiment=$output" "title=comparison of ${revisions[1]} with ${revisions[0]}" "repo=$repo" \
    "build_command=$build" "run_command=$run" "test_config=$test_config" "ranks=$ranks" "runs_per_revision=$runs" \
    "runs_planned=$((2 * runs))" report=revision "max_slowdown=$max_slowdown" "timing_warmup=$warmup" "slurm_job_id=${SLURM_JOB_ID-}" "${facts[@]}" </dev/null || exit 2
}

# note NAME NUMBER FIELD=VALUE...: in metadata.json, the run of that name, of revision NUMBER, has ended.
note() {
  zs-runs finish "$output" "$1" "revision=${names[$2]}" "commit=${commits[$2]}" "commit_subject=${subjects[$2]}" "${@:3}" >&2 ||
    die "cannot write $output"
}

# stop SIGNAL STATUS: what was done so far is in the files.
stop() {
  trap '' INT TERM HUP QUIT USR1
  end_attended
  say "stopped by SIG$1; finished runs are in $output"
  exit "$2"
}

# clean: at any end. Removes only this script's worktrees: git prune could forget a user's worktrees on a disk that is
# not mounted now. Status 1 is a verdict: without a verdict the failure is something else.
clean() {
  local status=$ended_with tree
  trap '' INT TERM HUP QUIT USR1
  [[ $status != 1 || -n ${judged-} ]] || status=2
  end_attended
  end_watcher
  [[ -n ${work-} ]] || exit "$status"
  if [[ -z $cleanup ]]; then
    say "worktrees: ${trees[*]} (git worktree remove --force takes them away)"
    exit "$status"
  fi
  for tree in "${trees[@]}"; do
    [[ -e $tree ]] || continue
    chmod -R u+w "$tree" 2>/dev/null || true
    ours worktree remove --force --force "$tree" 2>/dev/null || { rm -rf "$tree" && ours worktree prune; } ||
      say "cannot remove the worktree $tree"
  done
  rm -rf "$work"
  exit "$status"
}

# build_revisions: one worktree for each revision, or one for both if they are the same commit. A failed build is
# `failed`.
build_revisions() {
  local i tree log
  for i in 0 1; do
    if ((i == 1)) && [[ ${commits[0]} == "${commits[1]}" ]]; then
      trees+=("${trees[0]}")
      failed[1]=${failed[0]}
      [[ -z ${failed[0]} ]] || note_failed_build 1 "build_${labels[0]}.log"
      continue
    fi
    tree=$work/${labels[i]} log=build_${labels[i]}.log
    trees+=("$tree")
    ours worktree add --quiet --detach "$tree" "${commits[i]}" >"$output/$log" 2>&1 ||
      die "cannot check out '${revisions[i]}': $(tail -n 1 "$output/$log")"
    [[ -n ${build//[[:space:]]/} ]] || continue
    say "building ${revisions[i]} (${commits[i]:0:12})"
    # Variables of a make that started us, or of our own build folder, are not this build's.
    attended "$output/$log" "" 0 env -C "$tree" -u BUILD -u MAKEFLAGS -u MAKELEVEL -u MFLAGS bash -c "$build"
    ((code == 0)) || note_failed_build "$i" "$log"
  done
  [[ -z ${failed[0]} || -z ${failed[1]} ]] || die "neither revision builds: see $output"
}

# note_failed_build NUMBER LOG: it has one run in the records, which failed. The baseline stands first in all tables: what
# is to be noted of the other waits in `late`.
note_failed_build() {
  failed[$1]=1
  say "${revisions[$1]} does not build (exit code $code, see $output/$2):"
  tail -n 5 "$output/$2" | sed 's/^/    /' >&2
  late=("${labels[$1]}_build" "$1" "exit_code=$code" "failure=does not build: exit code $code, see $2" log=)
  (($1 == 1)) || { note "${late[@]}"; late=(); }
}

# run_revisions: A B B A A B ..., so that what changes slowly on the machine changes for both.
run_revisions() {
  local k i total=0 number=0
  for i in 0 1; do [[ -n ${failed[i]} ]] && total=$((total + 1)) || total=$((total + runs)); done
  zs-runs update "$output" runs_planned=$total || die "cannot write $output"
  for ((k = 1; k <= runs; k++)); do
    for i in $((k % 2 ? 0 : 1)) $((k % 2 ? 1 : 0)); do
      [[ -n ${failed[i]} ]] || run_revision "$i" "$k"
    done
  done
}

# run_revision NUMBER K: its Kth run. One whose first run fails is not run again.
run_revision() {
  local i=$1 name=${labels[$1]}_run$2 folder begin load other='' busy own clocks
  number=$((number + 1)) folder=$output/logs_$name
  mkdir "$folder" || die "cannot write $output"
  export ZS_LAUNCH="${launch[*]}" ZS_REGISTRY=$folder/saved_models
  meeting_point
  load=$(cut -d ' ' -f 1 /proc/loadavg) begin=${EPOCHREALTIME/./} busy=$(busy_time) own=$(own_time)
  watch_clocks "$folder/clocks" &
  watcher=$!
  attended "$folder/run.log" "$name" $((total - number + 1)) env -C "${trees[i]}" -u BUILD ZS_PROBE=off \
    PYTHONPATH="$share/probe/site:$share/probe${PYTHONPATH:+:$PYTHONPATH}" bash -c "$run $test_config"
  end_watcher
  local microseconds=$((${EPOCHREALTIME/./} - begin))
  # srun starts its ranks outside our process tree, so their use of the machine is not known then.
  if [[ ${launch[0]} != srun ]]; then
    other=$(awk -v ticks=$(($(busy_time) - busy - $(own_time) + own)) -v hz="$(getconf CLK_TCK)" -v us="$microseconds" \
      'BEGIN { share = ticks / hz / us * 1e6; printf "%.2f", (share > 0 ? share : 0) }')
  fi
  mapfile -t clocks < <(clocks_of "$folder/clocks")
  rm -f "$folder/clocks"
  note "$name" "$i" "run=$2" "order=$number" "exit_code=$code" "command=$run${test_config:+ $test_config}" "launch=$ZS_LAUNCH" \
    "log=logs_$name/run.log" "host=${SLURM_JOB_NODELIST:-$(hostname)}" "date=$(date '+%F %T')" \
    "seconds=$((microseconds / 1000000))" "load_before=$load" "other_load=$other" "${clocks[@]}"
  if ((code != 0 && $2 == 1)); then
    failed[i]=1
    say "${revisions[i]} is not run again"
    zs-runs update "$output" runs_planned=$((total -= runs - 1)) || die "cannot write $output"
  fi
}

# probe_revisions: a run of each with its tensors recorded, and where the two differ another with the values of that step, so
# that the element is known. Sets `probed` to zs-verify's status, and notes in one sentence what it says.
probe_revisions() {
  local i said step pass=''
  probed=3
  for i in 0 1; do [[ -z ${failed[i]} ]] || { say "no probe: ${revisions[i]} does not run"; return 0; }; done
  while :; do
    for i in 0 1; do probe_revision "$i" "$pass" || return 0; done
    probed=0
    zs-verify "$output/probe_${labels[0]}$pass" "$output/probe_${labels[1]}$pass" >"$output/probe_comparison.txt" || probed=$?
    ((probed < 2 || probed == 3)) || die "the probes cannot be compared; they are in $output"
    step=$(sed -n 's/^step: //p' "$output/probe_comparison.txt")
    [[ $probed != 0 && -n $step && -z $pass ]] || break
    pass=.step_$step
  done
  # Rounding does not change by itself: if a bit differs on one machine, the revisions differ.
  [[ -z $step ]] || probed=1
  said=$(sentence <"$output/probe_comparison.txt")
  zs-runs update "$output" "probe_comparison=$said" "probe_verdict=$( ((probed == 1)) && echo DIFFERENT || sed -n 's/^verdict: //p' "$output/probe_comparison.txt")" ||
    die "cannot write $output"
  say "probe: $said (see $output/probe_comparison.txt)"
}

# sentence: reads the lines of zs-verify about two probes, and prints them as one sentence.
sentence() {
  awk '{ at = index($0, ": "); said[substr($0, 1, at - 1)] = substr($0, at + 2) }
    END {
      if ("headline" in said) print said["headline"]
      else if ("failure" in said) print said["failure"]
      else if (said["verdict"] == "exact") printf "all bits of %s tensors are the same, over %s steps\n", said["tensors_compared"], said["steps_compared"]
      else printf "%s; %s\n", said["verdict"], said["kind"]
    }'
}

# probe_revision NUMBER PASS: a run that records; with the values of step N where PASS is .step_N. Fails where it recorded none.
probe_revision() {
  local name=probe_${labels[$1]}$2
  meeting_point
  ZS_LAUNCH="${launch[*]}" ZS_REGISTRY=$output/$name.runs \
    attended "$output/$name.log" "" 0 env -C "${trees[$1]}" -u BUILD ZS_PROBE="$output/$name" ZS_PROBE_EVERY=1 \
    ZS_PROBE_VALUES="${2#.step_}" PYTHONPATH="$share/probe/site:$share/probe${PYTHONPATH:+:$PYTHONPATH}" bash -c "$run $test_config"
  rm -rf "$output/$name.runs"
  [[ ! -s $output/$name/rank-0.jsonl ]] || return 0
  say "no probe: ${revisions[$1]} recorded none (see $output/$name.log): no optimizer stepped, or its Python does not read PYTHONPATH"
  return 1
}

# Ticks that this machine's processors have worked, and those that our ended children have.
busy_time() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 + $9 }' /proc/stat; }
own_time() { sed 's/.*) //' "/proc/$$/stat" | awk '{ print $14 + $15 }'; }

# watch_clocks FILE: "cpu MHz" and "gpu MHz" lines while a run goes, ever more rarely so as not to be in its way.
watch_clocks() {
  local pause=0 never
  exec {never}<> <(:)
  while :; do
    read -r -t "$pause.1" -u "$never" || true
    { cat /sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq 2>/dev/null | sed 's/...$//' ||
      sed -n 's/^cpu MHz[^0-9]*//p' /proc/cpuinfo; } | sed 's/^/cpu /'
    if command -v nvidia-smi >/dev/null; then
      nvidia-smi --query-gpu=clocks.sm --format=csv,noheader,nounits 2>/dev/null | sed 's/^/gpu /' || true
    fi
    pause=$((pause * 2 + 1))
  done >"$1"
}

end_watcher() {
  [[ -n ${watcher-} ]] || return 0
  kill "$watcher" 2>/dev/null || true
  wait "$watcher" 2>/dev/null || true
  watcher=
}

# clocks_of FILE: NAME=VALUE lines: the least and the mean clock seen, and what sets it.
clocks_of() {
  awk '{ sum[$1] += $2; n[$1]++; if (n[$1] == 1 || $2 < least[$1]) least[$1] = $2 }
    END { for (unit in n) printf "%s_mhz=%.0f\n%s_mhz_least=%.0f\n", unit, sum[unit] / n[unit], unit, least[unit] }' "$1"
  sed 's/^/cpu_governor=/' /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2>/dev/null
  nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | sed -n '1s/^/gpu_driver=/p'
}

# report_comparison: the records, the data, the report. Ends with the verdict's status.
report_comparison() {
  local status=0 file said
  if ((${#late[@]})); then note "${late[@]}"; fi
  # A fault in a log (status 1) does not stop the evidence.
  cd "$output" || die "the folder $output is gone"
  zs-parse "${parse_words[@]}" . >.records || (($? == 1)) || die "the logs cannot be read; they are in $output"
  zs-aggregate --by revision --warmup "$warmup" -o revision_comparison.h5 .records || (($? == 1)) || die "the logs are in $output"
  rm -f .records
  for file in revision_comparison_report.md revision_comparison_report.html revision_comparison_data.json; do
    zs-report --kind revision --baseline "${names[0]}" --max_slowdown "$max_slowdown" revision_comparison.h5 -o "$file" >/dev/null &&
      status=0 || status=$?
    ((status != 2)) || die "cannot write $output/$file"
  done
  mapfile -t said < <(sed -nE 's/^  "(label|text)": "(.*)",$/\2/; T; s/\\(["\\])/\1/g; p' revision_comparison_data.json)
  echo "${said[0]}: ${said[1]}"
  echo "report: $output/revision_comparison_report.html"
  judged=1
  exit "$status"
}
