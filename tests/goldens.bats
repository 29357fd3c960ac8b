# SPDX-License-Identifier: Apache-2.0
# Goldens: recordings that a project keeps. zs-verify --golden answers same, environment or code. CI scripts and git bisect.
setup_file() { load helper && warm_up 'torch, pytest'; }
teardown_file() { load helper && cool_down; }
setup() {
  load helper
  warm
  cd "$BATS_TEST_TMPDIR"
  export DATA=$ROOT/tests/data/probe
}

# made KIND FOLDER [ENVIRONMENT]: a training of that kind, recorded once more, in an environment.
made() {
  rm -rf "$2"
  mkdir -p "$(dirname "$2")"
  cp -r "$DATA/$1" "$2"
  local id
  id=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
  sed -i -E "1s/\"id\": \"[0-9a-f]*\"/\"id\": \"$id\"/; 1s/\\}\$/, \"environment\": {\"instruction set\": \"${3:-AVX512}\", \"processor\": \"one\"}}/" "$2"/rank-*.jsonl
}

# moved FOLDER: its first parameter begins with other bits, as under ZS_PROBE_PERTURB.
moved() {
  for file in "$1"/rank-*.jsonl; do
    jq -c 'if .start == 0 then .tensors[0].digest |= .[1:] + .[:1] else . end' "$file" >"$file.new"
    mv "$file.new" "$file"
  done
}
export -f moved

golden() { run --separate-stderr "$1" zs-verify --golden "${@:2}"; }

@test "golden: the same bits are the same; what differs is the environment's or the code's" {
  made plain seen
  run -0 --separate-stderr zs-verify --golden kept seen --update
  [[ $output == *"moved: the first golden"* ]] || complain "$output"
  [ "$(ls kept)" = "torch-$(jq -r .torch seen/rank-0.jsonl | head -n 1 | tr '[:upper:]+' '[:lower:]-')-avx512-one" ] || complain "$(ls kept)"
  (($(cat kept/*/* | wc -c) <= 200000)) || complain "a golden of $(cat kept/*/* | wc -c) bytes"
  made plain seen
  golden -0 kept seen
  [[ $output == *"verdict: same"$'\n'*"environment: the same"* ]] || complain "$output"
  made plain seen AVX2
  golden -0 kept seen
  [[ $output == *"verdict: same"$'\n'*"environment: instruction set AVX512 -> AVX2"* ]] || complain "$output"
  made fsdp seen AVX2
  golden -0 kept seen
  [[ $output == *"verdict: environment"$'\n'"headline: instruction set AVX512 -> AVX2: the differences are within rounding"* ]] || complain "$output"
  made fsdp seen
  golden -1 kept seen
  [[ $output == *"verdict: code"$'\n'"headline: other bits in the same environment, within rounding: "* ]] || complain "$output"
  golden -0 kept seen --allow rounding
  for environment in AVX512 AVX2; do
    made fault seen $environment
    golden -1 kept seen --allow rounding
    [[ $output == *"verdict: code"$'\n'"headline: step 3: gradient of 0.weight: "* ]] || complain "$environment: $output"
  done
  made plain seen
  golden -3 nothing seen
  [[ $output == *"verdict: no golden"* ]] || complain "$output"
  verdict
}

@test "golden: a copy of itself proves nothing, and a damaged or missing recording is an error with its place" {
  made plain seen
  zs-verify --golden kept seen --update
  golden -3 kept seen
  [[ $output == *"one is a copy of the other"* ]] || complain "$output"
  golden -2 kept nothing
  ln -s loop loop
  golden -2 loop seen
  [[ $stderr == *"loop: cannot list the folder: Too many levels of symbolic links"* ]] || complain "$stderr"
  sed -i '3s/"digest": "/"digest": "x/' seen/rank-0.jsonl
  golden -2 kept seen
  [[ $stderr == "zs-verify: seen/rank-0.jsonl:3: "* ]] || complain "$stderr"
  run -2 --separate-stderr zs-verify --golden kept seen other
  verdict
}

@test "golden: environments lie beside each other; --update replaces its own and says what moved" {
  for environment in AVX512 AVX2 NEON; do
    made plain seen $environment
    zs-verify --golden kept seen --update
  done
  [ "$(ls kept | wc -l)" = 3 ] || complain "$(ls kept)"
  made fault seen AVX2
  run -0 --separate-stderr zs-verify --golden kept seen --update
  [[ $output == *"moved: beside the golden before: step 3: gradient of 0.weight: "* ]] || complain "$output"
  [ "$(ls kept | wc -l)" = 3 ] || complain "$(ls kept)"
  made fault seen AVX2
  golden -0 kept seen
  made fault seen NEON
  golden -1 kept seen
  made plain seen SSE
  run -0 --separate-stderr zs-verify --golden kept seen --update
  [[ $output == *"moved: beside kept/torch-"*": "* ]] || complain "$output"
  made plain seen
  made plain other
  run -2 --separate-stderr zs-verify --golden floors seen --update --floor other
  [[ $stderr == *"other: begins with the parameters of seen: record a floor with ZS_PROBE_PERTURB=1" ]] || complain "$stderr"
  [ ! -e floors ] || complain "a golden was written"
  moved other
  zs-verify --golden floors seen --update --floor other
  run -0 --separate-stderr zs-verify --golden floors seen --update --floor other
  [[ $output == *"moved: nothing: the golden before is of this recording"* ]] || complain "$output"
  [ -s floors/*/floor/rank-0.jsonl ] || complain "no floor is kept"
  verdict
}

@test "golden: many tests are a table; what has no golden and no recording is named" {
  for name in a b c d; do made plain "seen/$name"; done
  zs-verify --golden kept seen --update >/dev/null
  for name in a b c; do made plain "seen/$name"; done
  rm -r seen/d
  made fault seen/b
  made plain seen/new
  golden -1 kept seen
  [[ $output == *"verdict: 1 code, 1 no golden, 1 no recording, 2 same"* ]] || complain "$output"
  [[ $output == *"b: code: step 3: gradient of 0.weight: "* ]] || complain "$output"
  run -1 --separate-stderr zs-verify --golden kept/b seen/b --format github
  [[ $output == "::error title=zs-verify::code: step 3: gradient of 0.weight: "* ]] || complain "$output"
  [ "${#lines[@]}" = 1 ] || complain "$output"
  verdict
}

@test "golden: values of logs and tables are the same as printed, or differ from a step on" {
  mkdir -p kept/gpt new/gpt
  for step in 1 2 3 4; do echo "step $step loss $((9 - step)).5"; done >kept/gpt/values.txt
  cp kept/gpt/values.txt kept/other.txt
  cp kept/gpt/values.txt new/gpt/values.txt
  sed 's/^step 3 loss 6.5/step 3 loss 6.6/' kept/other.txt >new/other.txt
  golden -1 kept new
  [[ $output == *"verdict: 1 code, 1 same"* ]] || complain "$output"
  [[ $output == *"other.txt: code: from step 3 on, loss: 6.5 and 6.6"* ]] || complain "$output"
  golden -0 kept new --atol 0.2
  golden -0 kept/gpt/values.txt new/gpt/values.txt
  # Megatron's columns: zs does not know num-zeros, and a time is no value of a training. A folder means its file of that name.
  megatron() {
    jq -n --argjson zeros "$1" --argjson time "$2" '{"lm loss": {"start_step": 1, "end_step": 2, "step_interval": 1, "values": {"1": 10.5, "2": 10.25}},
      "num-zeros": {"start_step": 1, "end_step": 2, "step_interval": 1, "values": {"1": 50, "2": $zeros}},
      "forward-time": {"start_step": 1, "end_step": 2, "step_interval": 1, "values": {"1": 0.5, "2": $time}}}'
  }
  megatron 60 0.5 >kept/m.json
  megatron 60 0.75 >new/m.json
  golden -0 kept new/m.json
  megatron 61 0.5 >new/m.json
  golden -1 kept new/m.json
  [[ $output == *"headline: from step 2 on, num-zeros: 60 and 61"* ]] || complain "$output"
  run -2 --separate-stderr zs-verify --golden kept new --update
  verdict
}

@test "golden: the script of share/ci records, compares and annotates; the action and the job of GitLab run it" {
  train='to=${ZS_PROBE#golden:}; cp -r seen/$KIND "$to"; [[ -z ${ZS_PROBE_PERTURB-} ]] || moved "$to"'
  for kind in plain fault; do made $kind seen/$kind; done
  check=$ROOT/share/ci/check-golden
  export KIND=plain
  ZS_UPDATE=1 run -0 "$check" kept bash -c "$train"
  made plain seen/plain
  run -0 "$check" kept bash -c "$train"
  [[ $output == *"verdict: same"* ]] || complain "$output"
  GITHUB_ACTIONS=true KIND=fault ZS_KEEP=left run -1 "$check" kept bash -c "$train"
  [[ $output == "::error title=zs-verify::code: step 3: "* ]] || complain "$output"
  [ -s left/probe/rank-0.jsonl ] || complain "nothing is left"
  run -2 "$check" kept true
  [[ $output == *"check-golden: nothing was recorded"* ]] || complain "$output"
  # What the files say is what is run.
  line=$(sed -n "s/^      run: '\(.*check-golden.*\)'/\1/p" "$ROOT/share/ci/action.yml")
  ACTION=$ROOT/share/ci GOLDEN=kept COMMAND=$train KIND=fault run -1 bash -c "$line"
  ACTION=$ROOT/share/ci GOLDEN=kept COMMAND=$train run -0 bash -c "$line"
  mkdir share && ln -s "$ROOT/share/ci" share/ci
  line=$(sed -n 's/^    - \(share.ci.check-golden.*\)/\1/p' "$ROOT/share/ci/gitlab.yml")
  ZS_GOLDEN=kept ZS_COMMAND=$train KIND=fault run -1 bash -c "$line"
  ZS_GOLDEN=kept ZS_COMMAND=$train run -0 bash -c "$line"
  verdict
}

@test "golden: git bisect run finds the commit that changed the training, past one that cannot be tested" {
  made plain "$PWD/seen/plain"
  made fault "$PWD/seen/fault"
  export SEEN=$PWD/seen
  git init -q repo
  cd repo
  cp "$ROOT/share/ci/check-golden" ..
  commits=(plain plain broken plain fault fault)
  for i in "${!commits[@]}"; do
    echo "${commits[i]} $i" >kind
    git add kind
    git -c user.name=a -c user.email=a@b.c commit -q -m "commit $i"
  done
  train='read -r kind _ <kind; to=${ZS_PROBE#golden:}; cp -r "$SEEN/$kind" "$to"; [[ -z ${ZS_PROBE_PERTURB-} ]] || moved "$to"'
  git checkout -q HEAD~5
  ZS_UPDATE=1 ../check-golden ../kept bash -c "$train"
  made plain "$SEEN/plain"
  git checkout -q -
  git bisect start HEAD HEAD~5 >/dev/null
  export train
  line=$(sed -n 's/^git bisect run //p' "$ROOT/docs/goldens.md")
  line=${line//share\/ci/..}
  line=${line//goldens\/train/../kept}
  line=${line//python3 -m zs_probe train.py/bash -c \"\$train\"}
  run -0 bash -c "git bisect run $line"
  [[ $output == *"is the first bad commit"* ]] || complain "$output"
  [ "$(git log -1 --format=%s refs/bisect/bad)" = "commit 4" ] || complain "$output"
  verdict
}

@test "golden: pytest's fixture records what a test trains; --zs-update writes; a planted fault fails with its headline" {
  python_with "torch, pytest" python3-torch python3-pytest
  warm_python
  cat >test_train.py <<'PY'
import os
import torch

def train(factor=1.0, clip=None):
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(3):
        loss = model(torch.randn(4, 8, generator=torch.Generator().manual_seed(step))).pow(2).mean() * factor
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad()

def test_linear(zs_golden):
    train(float(os.environ.get("FACTOR", 1)))

def test_clipped(zs_golden):
    train(float(os.environ.get("FACTOR", 1)), 1e-3)

def test_nothing_trains(zs_golden):
    pass
PY
  export PYTHONPATH=$ROOT/share/probe PYTHONDONTWRITEBYTECODE=1
  pytest() { "$PYTHON" -m pytest -q -p no:cacheprovider -p zs_probe.pytest test_train.py "$@"; }
  run -1 pytest -k linear
  [[ $output == *"zs_golden: no golden: "*"pytest --zs-update writes one"* ]] || complain "$output"
  run -0 pytest -k linear --zs-update
  [ -s goldens/test_train/test_linear/*/rank-0.jsonl ] || complain "$output"
  [ -s goldens/test_train/test_linear/*/floor/rank-0.jsonl ] || complain "no floor: $output"
  mkdir -p site/zero_suite-0.dist-info  # as the wheel registers it: asked for once more by name, it is one plugin
  printf 'Metadata-Version: 2.1\nName: zero-suite\nVersion: 0\n' >site/zero_suite-0.dist-info/METADATA
  printf '%b' "$(sed -n 's/.*b"\(\[pytest11\][^"]*\)".*/\1/p' "$ROOT/share/wheel")" >site/zero_suite-0.dist-info/entry_points.txt
  [ -s site/zero_suite-0.dist-info/entry_points.txt ]
  PYTHONPATH=$PWD/site:$PYTHONPATH run -0 pytest -k linear
  run -0 pytest -k linear
  [[ $output == *"same: test_train.py::test_linear: the bits of the golden"* ]] || complain "$output"
  FACTOR=2 GITHUB_ACTIONS=true run -1 pytest -k linear
  [[ $output == *"zs_golden: code: step 1: gradient of "*"x 2"* ]] || complain "$output"
  [[ $output == *"::error title=zs golden test_train.py::test_linear::"* ]] || complain "$output"
  sed -i -E '1s/"instruction set": "[^"]*"/"instruction set": "another"/' goldens/test_train/test_linear/*/rank-0.jsonl
  run -0 pytest -k linear
  # Clipping hides the factor from what the optimizer gets; the norm tells it.
  run -0 pytest -k clipped --zs-update
  FACTOR=2 run -1 pytest -k clipped
  [[ $output == *"zs_golden: code: step 1: norm of rank 0: "*", x 2.000"* ]] || complain "$output"
  run -1 pytest -k nothing
  [[ $output == *"zs_golden: nothing was recorded"* ]] || complain "$output"
  verdict
}
