# SPDX-License-Identifier: Apache-2.0
# Runs the indented commands of README.md and of the guides in docs/, in order, in a copy of a fresh and built checkout.
# Commands of not_here (tests/examples.bash) are checked, but not run.
setup() {
  load helper
  warm
  load examples
  cd "$BATS_TEST_TMPDIR"
}

# The commands of DOCUMENT, one per line, and the lines of output behind them; a line that ends with \ continues in the next.
commands() {
  awk '
    /^```/ { fenced = !fenced }
    !fenced && (more || /^    [^ ]/) { sub(/^ */, ""); more = sub(/ *\\$/, ""); printf "%s%s", $0, more ? " " : "\n" }' "$1"
}

# walk DOCUMENT FILE...: runs its commands here, changed by `shorter`, a script of sed; they make the files.
walk() {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built: make all"
  for folder in slurm share man; do ln -s "$ROOT/$folder"; done
  ln -s "$BUILD" build
  [[ ! -e ${ZS_WARM_ENGINE:-} ]] || { rm build && mkdir build && ln -s "$BUILD"/* build/ && ln -sf "$BUILD"-warm/zs-* build/; }
  export PYTHONPATH=$ROOT/share/probe PYTHONDONTWRITEBYTECODE=1
  while IFS= read -r line; do follow "$line"; done < <(commands "$ROOT/$1" | sed -E "${shorter-}")
  for file in "${@:2}"; do [ -s "$file" ] || complain "$1 makes no $file"; done
  verdict
}

@test "readme: every command runs, in order, with the status and the output that a reader expects" {
  PATH=$(tr : '\n' <<<"$PATH" | grep -vxE "$BUILD(-warm)?" | paste -sd:)
  walk README.md logs.html loss.png for-deepspeed
}

@test "readme: it has at most 150 lines" {
  (($(wc -l <"$ROOT/README.md") <= 150))
}

@test "guide: verify" { walk docs/verify.md; }
@test "guide: goldens" { walk docs/goldens.md; }
@test "guide: train" {
  # A tenth of the steps: what the guide shows is the same.
  shorter='s/--max_steps [24]0/--bench_step 4/; s/--save_steps 20/--save_steps 2/; s/--max_steps 60/--max_steps 6/'
  [ "$(commands "$ROOT/docs/train.md" | grep -cE -- '--max_steps [24]0')" -ge 9 ]
  walk docs/train.md adapter
}
@test "guide: other trainers" { walk docs/trainers.md; }
@test "guide: checkpoints" { walk docs/checkpoints.md for-deepspeed for-fsdp as-safetensors; }
@test "guide: reports" { walk docs/reports.md logs.html loss.png report.html gradients.html saved_models/report.html; }
@test "guide: reinforcement learning" { walk docs/rl.md; }
@test "guide: experiments" {
  # The sets that come with zs, but one layer, and 4 steps for 20: what the guide shows is the same.
  sed 's/max_steps: 20, log_interval: 5/max_steps: 4, log_interval: 2, num_layers: 1, seq_length: 16/' "$ROOT/share/conditions/batch.yaml" >sets.yaml
  grep -q 'max_steps: 4' sets.yaml
  export ZS_CONDITIONS=$PWD/sets.yaml
  walk docs/experiments.md
}
@test "guide: GPUs" { walk docs/gpus.md; }

@test "guides: each has a test above, begins with a command, and README names it" {
  for guide in "$ROOT"/docs/*.md; do
    name=docs/${guide##*/}
    grep -qF "]($name)" "$ROOT/README.md" || complain "README does not name $name"
    [[ $name != docs/@(design|found|glossary|notebooks|verdicts).md ]] || continue
    [[ $(sed -n 3p "$guide") == '    '[a-zA-Z]* ]] || complain "$name does not begin with a command"
    [[ $name == docs/install.md ]] || grep -q "walk $name" "$BATS_TEST_FILENAME" || complain "no test walks $name"
  done
  verdict
}

@test "design: stage 3 on one screen is the plan that zs-train prints, and the files of its operations exist" {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built: make all"
  command=$(commands "$ROOT/docs/design.md" | grep -- --print_plan)
  sed -n '/^# plan: /,/^```/p' "$ROOT/docs/design.md" | sed '$d' >shown
  bash -c "$command" | tr '\t' ' ' >printed
  diff printed <(sed -E 's/ +zero\/.*//; s/^([0-9]+) +/\1 /' shown)
  for file in $(grep -oE '(zero|comm|model|tree|device)/[a-z0-9_.]+' shown | sort -u); do
    [ -e "$ROOT/lib/engine/$file" ] || complain "there is no $file"
  done
  verdict
}

@test "documents: the places that they name exist" {
  for document in README.md CONTRIBUTING.md $(cd "$ROOT" && echo docs/*.md); do
    for name in $(grep -oE '(share|slurm|man|bench|docs|lib|tests)/[A-Za-z0-9_./-]+[a-z0-9]' "$ROOT/$document" | grep -vE 'zs-x|NAME|cuda$' | sort -u); do
      [[ -e $ROOT/$name || -e $ROOT/$name.cpp ]] || complain "$document: there is no $name"
    done
    for name in $(awk '/^```/ { code = !code } !code' "$ROOT/$document" | grep -oE '\]\([^)#:]+' | cut -c 3- | sort -u); do
      [ -e "$(dirname "$ROOT/$document")/$name" ] || complain "$document: there is no $name"
    done
  done
  verdict
}

@test "demo: ends with six commands to try, which run on what it made" {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built: make all"
  run -0 --separate-stderr "$ROOT/share/demo" minimal_test -- --num_layers 1 --seq_length 16 --max_steps 4 --log_interval 1
  grep '^  ' <<<"$output" >next
  [ "$(wc -l <next)" = 6 ]
  while IFS= read -r line; do follow "${line#  }"; done <next
  ((followed == 6)) || complain "$followed of 6 ran"
  verdict
}
