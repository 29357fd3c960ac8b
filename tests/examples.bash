# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Commands of documents, run as a reader types them; loaded after helper. A comment of the line says the expected status if
# that is not 0, as `# status 1`, and the verdict, as `# verdict: exact`. A line that begins with # is a part of the output of
# the command before it, with ... for omitted text.

# not_here LINE: says why a command does not run in a test; fails where it does.
not_here() {
  case $1 in
    make\ * | pip\ install\ *) echo "it installs, or builds for minutes" ;;
    *train_grpo.py* | 'zs-verify rl'* | 'zs-report rl'* | 'zs-verify --follow '*' rl '*) echo "it needs TRL, and a training of the reader: tests/rollout.bats" ;;
    man\ *) echo "it shows pages of this system" ;;
    *'$zs/slurm/'*) echo "a day with DeepSpeed: tests/trainers/run" ;;
    sbatch\ * | slurm/sandbox/* | eval\ *slurm/sandbox/*) echo "a cluster: tests/sandbox.bats" ;;
    *probe-one* | *probe-two* | *probe-bad* | *' seen'* | *golden:* | *check-golden*)  # torchrun of Debian's PyTorch 1.13 fails
      python3 -c 'import torch; exit(torch.__version__ < "2")' 2>/dev/null && return 1
      echo "it needs PyTorch 2: tests/trainers/run first_job"
      ;;
    *share/examples/trainer.py*)
      python3 -c 'import transformers' 2>/dev/null && return 1
      echo "it needs transformers: tests/trainers/run trainer"
      ;;
    *slurm/compare-revisions.sbatch\ *) echo "it builds two revisions: tests/revisions.bats" ;;
    'bash slurm/batch.sbatch' | 'bash slurm/batch.sbatch '*'# minutes'*) echo "minutes: tests/batch.bats" ;;
    *) return 1 ;;
  esac
}

# offers LINE: whether the script in a line that does not run has the options that the line gives it, and whether the folder of
# a resume is free.
offers() {
  local script word own kept=resume-test
  if [[ $1 =~ --keep\ ([^ ]+) ]]; then kept=${BASH_REMATCH[1]}; fi
  [[ $1 != 'zs-verify '*--resume\ * || ! -e $kept ]] || complain "$1: $kept is there already"
  [[ $1 =~ (slurm/[a-z-]+\.sbatch)(.*) ]] || return 0
  script=${BASH_REMATCH[1]}
  bash "$ROOT/$script" --help >help || complain "$script --help: status $?"
  # Words in quotes and behind -- are the training's.
  read -ra own <<<"$(sed -E "s/ #.*//; s/'[^']*'//g; s/ -- .*//" <<<"${BASH_REMATCH[2]}")"
  for word in "${own[@]}"; do
    [[ $word != --?* ]] || grep -q -- "$word" help || complain "$script has no option $word"
    [[ $word != share/* || -e $word ]] || complain "there is no $word"
  done
}

# prints WORDS: complains if the last command ran and its output lacks them; ... in WORDS is any text of the line.
prints() {
  local pattern
  [ -e out ] || return 0
  pattern=$(sed 's/[][\.*^$()+?{|]/\\&/g; s/\\\.\\\.\\\./.*/g' <<<"$1")
  grep -qE -- "$pattern" out || complain "does not print '$1': $(tail -n 5 out)"
}

# follow LINE: runs a command of a document in this folder, and complains where its status or its verdict is another.
follow() {
  local line=$1 expected=0 status=0 words=''
  if [[ $line == '#'* ]]; then prints "${line#'# '}"; return; fi
  if not_here "$line" >why; then rm -f out && offers "$line"; return; fi
  if [[ $line =~ '# status '([0-9]+) ]]; then expected=${BASH_REMATCH[1]}; fi
  if [[ $line =~ 'verdict: '([A-Za-z]+) ]]; then words="verdict: ${BASH_REMATCH[1]}"; fi
  if [[ $line == *'--device cuda'* && ! -e /dev/nvidia0 ]]; then expected=2 words='--device cuda'; fi
  followed=$((followed + 1))
  if [[ $line == export\ * ]]; then eval "$line"; return; fi
  timeout "$HANG" bash -o pipefail -c "$line" >out 2>&1 </dev/null || status=$?
  ((status == expected)) || complain "$line: status $status, not $expected: $(tail -n 5 out)"
  [[ -z $words ]] || grep -qF -- "$words" out || complain "$line: does not say '$words': $(tail -n 5 out)"
}
followed=0
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
