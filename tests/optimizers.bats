# SPDX-License-Identifier: Apache-2.0
# The optimizers except AdamW: each has one digest, also after a resume. Their state, zs-verify step by step, and errors.
setup() {
  load helper
  warm
  load digests
  cd "$BATS_TEST_TMPDIR"
  SMALL=(--model_name tiny --num_layers 2 --seq_length 32 --output_dir runs)
  KINDS=("adam --weight_decay 0.1" "sgd --learning_rate 0.05" "sgd --learning_rate 0.05 --momentum 0.9 --nesterov true --weight_decay 0.01"
    "lion --learning_rate 3e-4 --weight_decay 0.1" "muon --learning_rate 0.02 --adamw_learning_rate 0.001"
    "muon --adjust_lr match_rms_adamw --ns_steps 3 --decay matrices" "adamw_8bit --weight_decay 0.1")
}

digest() { sed -n 's/^state_digest: //p' "$1"; }
value() { sed -n "s/^run: $1=//p" "$2"; }
ranks() { mpirun --oversubscribe --bind-to none -n "$@"; }

@test "optimizers: one digest for each, on two ranks and four, at every stage, offloaded, after passes" {
  for kind in "${!KINDS[@]}"; do # each beside two of three layouts, in turn
    run="${SMALL[*]} --max_steps 4 --save_final false --optimizer ${KINDS[kind]}"
    training "$kind" 1 "$run --zero_stage 0 --gradient_accumulation_steps 4"
    ((kind % 3 == 0)) || training "$kind" 2 "$run --zero_stage 1 --gradient_accumulation_steps 2 --offload_device cpu"
    ((kind % 3 == 1)) || training "$kind" 4 "$run --zero_stage 3 --deepcompile"
    ((kind % 3 == 2)) || training "$kind" 2 "$run --zero_stage 2 --gradient_accumulation_steps 2 --offload_device nvme --nvme_path nvme"
  done
  run -0 one_digest_each
  [ "$(cut -d' ' -f2 <<<"$output" | sort -u | wc -l)" = "${#KINDS[@]}" ]
}

@test "optimizers: a resumed run has the bits of an undisturbed one, at another stage and on other ranks" {
  for kind in "${KINDS[@]}"; do
    rm -rf runs
    # shellcheck disable=SC2206
    run=("${SMALL[@]}" --optimizer $kind)
    zs-train "${run[@]}" --max_steps 6 --zero_stage 0 --gradient_accumulation_steps 2 --save_final false >whole
    ranks 2 zs-train "${run[@]}" --max_steps 3 --zero_stage 2 --run_name half >first
    zs-train --resume half --output_dir runs --max_steps 6 --zero_stage 1 --gradient_accumulation_steps 2 >rest
    [ "$(digest whole)" = "$(digest rest)" ] || complain "$kind"
    zs-checkpoint verify runs/*/final_checkpoint
  done
}

@test "optimizers: zs-verify proves each beside plain PyTorch, step by step" {
  for kind in "${!KINDS[@]}"; do
    for options in "--zero_stage 3" "--zero_stage 1 --bf16 --rtol 0 --atol 0" "--zero_stage 2 --compile --offload_device cpu"; do
      verified "${KINDS[kind]%% *}$kind" 2 "--num_layers 2 --seq_length 32 --iterations 3 --optimizer ${KINDS[kind]} $options"
    done
  done
  run -0 all_exact $((3 * ${#KINDS[@]}))
}

@test "optimizers: a checkpoint has what each keeps, by PyTorch's names, and state is as large as predicted" {
  check() {  # check OPTIONS NUMBERS KINDS: bytes for each parameter beside two of 4, and what zs-checkpoint shows
    rm -rf runs
    # shellcheck disable=SC2086
    zs-train "${SMALL[@]}" --max_steps 2 --zero_stage 0 --optimizer $1 >log
    parameters=$(value model.parameters log)
    [ "$(value ideal_state_bytes log)" = $((parameters * (8 + 4 * $2))) ]
    zs-checkpoint show --format json runs/*/final_checkpoint >show.json
    [ "$(jq -r '[.kinds[].kind | select(. == "exp_avg" or . == "exp_avg_sq" or . == "momentum_buffer")] | sort | join(" ")' show.json)" = "$3" ]
  }
  check "adam" 2 "exp_avg exp_avg_sq"
  check "sgd --momentum 0.9" 1 momentum_buffer
  check "sgd" 0 ""
  check "lion" 1 exp_avg
  rm -rf runs
  zs-train "${SMALL[@]}" --max_steps 2 --zero_stage 0 --optimizer muon >log
  zs-checkpoint show --format json runs/*/final_checkpoint >show.json
  zs-checkpoint convert --to hf runs/*/final_checkpoint weights
  run -2 zs-checkpoint convert --to dcp runs/*/final_checkpoint state
  [[ $output == *"was trained with the optimizer muon, and zs writes AdamW's groups alone: convert --to hf or safetensors"* ]] || complain "$output"
  # One number of a block's matrix, two of all else.
  elements() { jq -r --arg kind "$1" '.kinds[] | select(.kind == $kind) | .elements' show.json; }
  [ "$(elements exp_avg)" = "$(elements exp_avg_sq)" ]
  [ $(($(elements exp_avg) + $(elements momentum_buffer))) = "$(value model.parameters log)" ]
  [ "$(value ideal_state_bytes log)" = $(($(value model.parameters log) * 8 + 4 * (2 * $(elements exp_avg) + $(elements momentum_buffer)))) ]
}

@test "optimizers: DeepSpeed's file names them, with DeepSpeed's parameters and defaults" {
  check() {  # check SECTION OPTION...: the file trains to the bits of the options
    echo "{\"optimizer\": $1, \"gradient_clipping\": 1}" >ds.json
    zs-train "${SMALL[@]}" --max_steps 3 --save_final false --zero_stage 0 --deepspeed_config ds.json >log 2>err
    zs-train "${SMALL[@]}" --max_steps 3 --save_final false --zero_stage 0 "${@:2}" >plain
    [ "$(digest log)" = "$(digest plain)" ] || complain "$1: $(cat err)"
  }
  check '{"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9, "nesterov": true, "weight_decay": 0.1}}' \
    --optimizer sgd --learning_rate 0.1 --momentum 0.9 --nesterov true --weight_decay 0.1
  check '{"type": "Lion", "params": {"lr": 0.001}}' --optimizer lion --set training.beta2=0.999
  check '{"type": "Lion", "params": {"lr": 0.001, "betas": [0.95, 0.98]}}' --optimizer lion --set training.beta1=0.95 --set training.beta2=0.98
  check '{"type": "Adam", "params": {"lr": 0.001, "weight_decay": 0.1}}' --weight_decay 0.1
  check '{"type": "Adam", "params": {"lr": 0.001, "weight_decay": 0.1, "adam_w_mode": false}}' --optimizer adam --weight_decay 0.1
  check '{"type": "Muon", "params": {"ns_method": "standard"}}' --optimizer muon --learning_rate 0.02 --adamw_learning_rate 0.0003 \
    --weight_decay 0 --set training.beta2=0.95 --set training.epsilon=1e-10
  check '{"type": "muon", "params": {"lr": 0.01, "adam_lr": 0.001, "momentum": 0.9, "betas": [0.9, 0.999], "eps": 1e-8}}' --optimizer muon \
    --learning_rate 0.01 --adamw_learning_rate 0.001 --weight_decay 0 --momentum 0.9
  grep -q 'optimizer.params.ns_method is gram, as DeepSpeed takes it, and zs iterates on the matrix' err
  check '{"type": "Muon", "params": {"lr": 0.001, "muon_lr": 0.02, "ns_method": "standard"}}' --optimizer muon \
    --learning_rate 0.02 --adamw_learning_rate 0.001 --weight_decay 0 --set training.beta2=0.95 --set training.epsilon=1e-10
  # And the other way round.
  for kind in "${KINDS[@]:0:5}"; do
    # shellcheck disable=SC2086
    zs-train --model_name tiny --optimizer $kind --print_deepspeed_config >ds.json 2>err
    # shellcheck disable=SC2086
    check "$(jq -c .optimizer ds.json)" --optimizer $kind
  done
  refused() {
    echo "{\"optimizer\": $1}" >ds.json
    run -2 zs-train "${SMALL[@]}" --max_steps 1 --deepspeed_config ds.json
    [[ $output == *"$2"* ]] || complain "$1: $output"
  }
  refused '"Muon"' 'ds.json:1: optimizer: Muon is not a section: write {"optimizer": {...}}, or leave it out'
  refused '{"type": "Lamb"}' "ds.json:1: optimizer.type: Lamb is not supported: zs has AdamW, Adam, SGD, Lion and Muon"
  refused '{"type": "sgd"}' "optimizer.type: sgd is not supported"
  refused '{"type": "SGD", "params": {"betas": [0.9, 0.9]}}' "optimizer.params.betas: DeepSpeed's torch.optim.SGD takes no such parameter: leave it out"
  refused '{"type": "SGD", "params": {"dampening": 0.1}}' "optimizer.params.dampening: 0.1 is not supported: momentum is not damped"
  refused '{"type": "Lion", "params": {"eps": 1e-8}}' "optimizer.params.eps: DeepSpeed's FusedLion takes no such parameter"
  refused '{"type": "Muon", "params": {"per_head_muon": true}}' "optimizer.params.per_head_muon: true is not supported"
  refused '{"type": "Muon", "params": {"ns_method": "svd"}}' "'svd' is neither standard nor gram"
}

@test "optimizers: what is wrong is refused by name, with what would be right" {
  refused() {  # refused TEXT OPTION...
    run -2 zs-train "${SMALL[@]}" --max_steps 1 "${@:2}"
    [[ $output == *"$1"* ]] || complain "${*:2}: $output"
  }
  refused "--optimizer: 'muno' is not one of adamw, adam, sgd, lion, muon, adamw_8bit, did you mean 'muon'?" --optimizer muno
  refused "training.beta2 has no effect here: it needs --optimizer adamw or --optimizer adam or --optimizer lion or --optimizer muon or --optimizer adamw_8bit" \
    --optimizer sgd --set training.beta2=0.9
  refused "--momentum has no effect here: it needs --optimizer sgd or --optimizer muon; leave it out" --momentum 0.9
  refused "--ns_steps has no effect here: it needs --optimizer muon" --optimizer lion --ns_steps 3
  refused "--use_torch_adam has no effect here: it needs --optimizer adamw" --optimizer muon --use_torch_adam
  refused "training.nesterov is true, and momentum is 0: set --momentum" --optimizer sgd --nesterov true
  refused "--momentum: '1' is not a number from 0 to less than 1" --optimizer sgd --momentum 1
  zs-train "${SMALL[@]}" --max_steps 2 --optimizer lion --run_name it >log
  refused "state.json: optimizer is lion, and this training has muon: use --optimizer lion, or begin with the weights alone" \
    --optimizer muon --max_steps 4 --checkpoint "$(echo runs/*/final_checkpoint)"
  run -2 zs-train --resume it --output_dir runs --max_steps 4 --optimizer adamw
  [[ $output == *"optimizer"* ]] || complain "$output"
}
