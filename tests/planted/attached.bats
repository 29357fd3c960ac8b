# SPDX-License-Identifier: Apache-2.0
# Trainings that know nothing of zs_probe, as their launchers start them. Gets transformers and Accelerate.
load newest

# recorded FOLDER COMMAND...: a training without output, recorded.
recorded() {
  ZS_PROBE=$1 run -0 "${@:2}"
  refute_output --partial zs_probe
}

# as_plain FOLDER LAYOUT: is the training of plain/, of the same samples.
as_plain() {
  run -0 zs-verify --allow rounding plain "$1"
  assert_line "steps_compared: 3"
  assert_line --partial "layout_b: $2"
  refute_line --partial "not recorded"
}

@test "launchers: accelerate launch, torchrun and plain Python on 1 and 2 processes record the same training" {
  local packages
  packages=$(packages_of transformers-5.23.0+accelerate-1.15.0)
  export PYTHONPATH=$ROOT/share/probe:$packages HOME=$PWD OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1
  local train=$ROOT/tests/planted/attached.py launch=("$PYTHON" -m accelerate.commands.launch --num_machines 1 --mixed_precision no --dynamo_backend no)
  recorded plain "$PYTHON" -m zs_probe "$train" plain
  recorded one "${launch[@]}" --cpu --num_processes 1 -m zs_probe "$train" accelerate
  as_plain one "plain, 1 rank"
  for how in accelerate trainer; do # with --cpu it launches one process, whatever is asked for; the trainings ask for processors
    recorded $how "${launch[@]}" --multi_gpu --num_processes 2 --main_process_port 0 -m zs_probe "$train" $how
    as_plain $how "DDP, 2 ranks"
  done
  recorded torchrun "$PYTHON" -m torch.distributed.run --nproc_per_node 2 --rdzv_backend c10d --rdzv_endpoint localhost:0 -m zs_probe "$train" plain
  as_plain torchrun "DDP, 2 ranks"
  for how in spawned forked; do
    recorded $how "$PYTHON" -m zs_probe "$train" $how
    as_plain $how "DDP, 2 ranks"
  done
}

@test "attach: a trainer of Lightning, and adapters of peft, which are all that is recorded of a frozen model" {
  installed pytorch_lightning pytorch-lightning==2.6.6
  installed peft peft==0.19.1
  export PYTHONPATH=$ROOT/share/probe HOME=$PWD OMP_NUM_THREADS=1
  local train=$ROOT/tests/planted/attached.py
  recorded plain "$PYTHON" -m zs_probe "$train" plain
  run -0 "$PYTHON" "$train" lightning attached
  refute_output --partial zs_probe
  as_plain attached "plain, 1 rank"
  recorded launched "$PYTHON" -m zs_probe "$train" lightning
  as_plain launched "plain, 1 rank"
  recorded lora "$PYTHON" -m zs_probe "$train" lora
  run -0 jq -r 'select(.step) | .tensors[].name | select(startswith("grad/"))' lora/rank-0.jsonl
  assert_line --partial lora_A
  refute_line --partial last
}
