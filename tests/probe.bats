# SPDX-License-Identifier: Apache-2.0
# Trainings of PyTorch under share/probe/zs_probe.py: recorded by tests/peers/probe.py, compared by zs-verify.
setup() {
  bats_load_library bats-support
  bats_load_library bats-assert
  load helper
  cd "$BATS_TEST_TMPDIR"
  cp -r "$ROOT/tests/data/probe" .
  cd probe
}

@test "the same training has the same bits, and a probe is not compared with itself" {
  cp -r plain again
  run -0 zs-verify plain again
  assert_line "verdict: exact"
  assert_line "tensors_compared: 32"
  run -2 zs-verify plain plain
}

@test "FSDP2 on two ranks differs from plain PyTorch by rounding, which a tolerance accepts" {
  run -1 zs-verify plain fsdp
  assert_line "verdict: DIFFERENT"
  assert_line "step: 1"
  assert_line "parameter: 0.weight"
  assert_line "place: [0, 1]"
  assert_line --partial "kind: rounding"
  assert_line "ranks_b: 2"
  assert_line "tensors_differing: 22" # the others are equal, joined over ranks
  run -1 zs-verify --rtol 1e-9 plain fsdp
  rm fsdp/step-*.rank-* plain/step-*
  run -3 zs-verify --rtol 1e-4 --atol 1e-6 plain fsdp # norms alone prove no element
  assert_line --partial "kept no values"
}

@test "a fault is told with its step, tensor and element, and is more than rounding" {
  run -1 zs-verify plain fault
  assert_line "step: 3"
  assert_line "what: gradient"
  assert_line "parameter: 0.weight"
  assert_line "place: [0, 0]"
  assert_line --partial "kind: more than rounding: step 3, grad/0.weight"
}

@test "ranks that hold other values, a part that is missing, a cut and a damaged file are said" {
  sed -i '2s/"name": "grad\/0.bias", "dtype": "F32", "of": 7/"name": "grad\/0.bias", "dtype": "F32", "of": 8/' plain/rank-0.jsonl
  run -1 zs-verify plain fault
  assert_output --partial "of grad/0.bias 7 of 8 elements are there"
  run zs-verify fsdp fault
  cp -r fsdp half
  head -n 3 fsdp/rank-1.jsonl >half/rank-1.jsonl # killed: steps that not every rank has are none
  printf '{"step": 3, "los' >>half/rank-1.jsonl
  run -3 zs-verify fsdp half
  assert_line "steps_compared: 2"
  assert_line "steps_alone: 2"
  rm half/rank-1.jsonl
  run -2 zs-verify fsdp half
  assert_output --partial "half/rank-1.jsonl"
  sed -i '3s/digest": "./digest": "g/' fault/rank-0.jsonl
  run -2 zs-verify plain fault
  assert_output --partial "fault/rank-0.jsonl:3: "
  local size
  for ((size = 0; size < 2500; size += 211)); do
    head -c "$size" "$ROOT/tests/data/probe/plain/rank-0.jsonl" >fault/rank-0.jsonl
    run zs-verify plain fault
    ((status <= 3)) || complain "$size bytes: status $status: $output"
  done
  verdict
}

@test "a probe of every second step is compared with one of every step, where both say that they ended alike" {
  cp -r plain second
  sed -i '/"step": [24]/d' second/rank-0.jsonl
  for folder in plain second; do sed -i '/"end"/d' $folder/rank-0.jsonl; done
  run -3 zs-verify plain second
  for folder in plain second; do echo '{"end": 4}' >>$folder/rank-0.jsonl; done
  run -0 zs-verify plain second
  assert_line "steps_compared: 2"
  assert_line "steps_alone: 2"
}

@test "several probes of one training: each beside the first, and the first step and operation that does not repeat" {
  cp -r plain again
  cp -r plain third
  run -0 zs-verify plain again third
  assert_line "each_with_first: again exact; third exact"
  run -1 zs-verify plain again fault
  assert_line "compared: plain with fault"
  assert_line "each_with_first: again exact; fault DIFFERENT"
  assert_line "step: 3"
  assert_line "stage: backward, or the reduction of gradients"
  run -2 zs-verify plain again plain
  assert_output --partial "plain and plain are the same"
  run -2 zs-verify --repeat 2 plain again
  assert_output --partial "compared by its names: zs-verify A B C"
}

@test "a training of zs records the same: one process beside ZeRO-3 on two ranks, to the last bit, and where two part" {
  train() { zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 3 --save_final false "${@:2}" --probe "$1" >"$1.log"; }
  train one --gradient_accumulation_steps 2 --probe_values all
  ZS_PROBE=two mpirun --oversubscribe --bind-to none -n 2 zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 3 \
    --save_final false --zero_stage 3 --probe_values 2,3 >two.log
  run -0 zs-verify one two
  assert_line "verdict: exact"
  assert_line "steps_compared: 3"
  assert_line "ranks_b: 2"
  refute_line --partial "missing: "
  train other --gradient_accumulation_steps 2 --probe_values all --set training.weight_decay=0.5
  run -1 zs-verify one other
  assert_line "step: 1"
  assert_line "what: parameter"
  assert_line "stage: optimizer"
  assert_line "parameter: transformer.wte.weight"
  assert_line --regexp "^place: \\[[0-9]+, [0-9]+\\]$"
  ZS_PROBE=off zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 1 --save_final false >/dev/null
  run -2 zs-train --model_name tiny --num_layers 1 --seq_length 16 --max_steps 1 --probe one
  assert_output --partial "one/rank-0.jsonl: is there already, the record of another training: name another folder with --probe"
  run -2 zs-train --model_name tiny --max_steps 1 --probe new --probe_values some
  assert_output --partial "'some' is neither a step nor all"
  run -2 env ZS_PROBE_EVERY=0 zs-train --model_name tiny --max_steps 1 --probe new
  assert_output --partial "ZS_PROBE_EVERY: '0' is not a whole number of at least 1"
}

@test "a loss alone that differs is a difference" {
  cp -r plain other
  sed -i '4s/"loss": [0-9.]*/"loss": 1.25/' other/rank-0.jsonl
  run -1 zs-verify plain other
  assert_line "verdict: DIFFERENT"
  assert_line --partial "loss: step 3, rank 0: "
  assert_line "tensors_differing: 0"
}

@test "replicas that differ from one another are a failure, also where the first ones agree" {
  mkdir a
  local row='"tensors": [{"name": "grad/w", "dtype": "F32", "of": 2, "shape": [2], "begin": 0, "count": 2, "squares": 1, "digest": '
  for rank in 0 1; do
    echo "{\"zs_probe\": 1, \"rank\": $rank, \"world_size\": 2, \"torch\": \"2\"}"  >a/rank-$rank.jsonl
    echo "{\"step\": 1, \"loss\": NaN, \"values\": null, $row \"000000000000000$rank\"}]}" >>a/rank-$rank.jsonl
  done
  cp -r a b
  run -1 zs-verify a b
  assert_line "verdict: FAILED"
  assert_output --partial "grad/w differs between rank 0 and rank 1"
}
