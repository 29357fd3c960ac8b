# SPDX-License-Identifier: Apache-2.0
# Adapters and frozen parameters: all layouts have one digest, also after a resume. zs-verify checks each step. Folders of
# peft are read and written. Settings that cannot work are rejected.
setup() {
  load helper
  warm
  load digests
  cd "$BATS_TEST_TMPDIR"
  SMALL=(--num_layers 2 --seq_length 32 --output_dir runs)
  KINDS=("tiny --lora_rank 4 --lora_alpha 8" "tiny-llama --lora_rank 2 --lora_targets q_proj,v_proj --use_rslora"
    "tiny-phi3 --lora_rank 3 --lora_targets qkv_proj --modules_to_save lm_head" "tiny-llama --freeze embed_tokens,layers.0"
    "tiny --freeze *.bias,wte --optimizer sgd --learning_rate 0.05" "tiny-llama --lora_rank 4 --nf4 double")
}

digest() { sed -n 's/^state_digest: //p' "$1"; }
value() { sed -n "s/^run: $1=//p" "$2"; }
ranks() { mpirun --oversubscribe --bind-to none -n "$@"; }

@test "adapters: one digest for each, on two ranks and four, at every stage, offloaded, after passes" {
  # Each beside two of three layouts, in turn: kinds and kernels meet all of them.
  for kind in "${!KINDS[@]}"; do
    turn=$kind
    for kernels in "" --compile --bf16; do
      run="${SMALL[*]} --max_steps 4 --save_final false --model_name ${KINDS[kind]} $kernels"
      training "$kind$kernels" 1 "$run --zero_stage 0 --gradient_accumulation_steps 4"
      ((++turn % 3 == 0)) || training "$kind$kernels" 2 "$run --zero_stage 1 --gradient_accumulation_steps 2 --offload_device cpu"
      ((turn % 3 == 1)) || training "$kind$kernels" 4 "$run --zero_stage 3 --deepcompile"
      ((turn % 3 == 2)) || training "$kind$kernels" 2 "$run --zero_stage 2 --gradient_accumulation_steps 2 --offload_device nvme --nvme_path nvme"
    done
  done
  run -0 one_digest_each
  [ "$(cut -d' ' -f2 <<<"$output" | sort -u | wc -l)" = $((3 * ${#KINDS[@]})) ]
}

@test "adapters: a resumed run has the bits of an undisturbed one, at another stage and on other ranks" {
  set -f
  for kind in "${KINDS[@]}"; do
    rm -rf runs
    # shellcheck disable=SC2206
    run=("${SMALL[@]}" --model_name $kind)
    zs-train "${run[@]}" --max_steps 6 --zero_stage 0 --gradient_accumulation_steps 2 --save_final false >whole
    ranks 2 zs-train "${run[@]}" --max_steps 3 --zero_stage 3 --run_name half >first
    zs-train --resume half --output_dir runs --max_steps 6 --zero_stage 1 --gradient_accumulation_steps 2 >rest
    [ "$(digest whole)" = "$(digest rest)" ] || complain "$kind"
    set +f
    zs-checkpoint verify runs/*/final_checkpoint
    set -f
  done
}

@test "adapters: zs-verify compares each step with plain PyTorch, and finds a changed bit of an adapter" {
  for kind in "${!KINDS[@]}"; do
    for options in "--zero_stage 3" "--zero_stage 1 --bf16 --rtol 0 --atol 0" "--zero_stage 2 --compile --offload_device cpu"; do
      verified "$kind" 2 "--iterations 4 --model_name ${KINDS[kind]} $options"
    done
  done
  run -0 all_exact $((3 * ${#KINDS[@]}))
  run -1 zs-verify --iterations 4 --model_name tiny --lora_rank 2 --inject_fault 3:transformer.h.1.attn.c_attn.lora_A.weight:5
  [[ $output == *"verdict: DIFFERENT"*"transformer.h.1.attn.c_attn.lora_A.weight"* ]] || complain "$output"
}

@test "adapters: zs-verify --reference merged finds them in the right places and of the right size" {
  for kind in "tiny --lora_rank 4" "tiny-llama --lora_rank 2 --lora_targets q_proj,v_proj --use_rslora" "tiny-phi3 --lora_rank 3 --compile"; do
    verified "${kind%% *}" 2 "--iterations 3 --zero_stage 2 --reference merged --model_name $kind"
  done
  run -0 verdicts
  [ "$(grep -c ' status 0; verdict: within tolerance;.*adds adapters to the weights' <<<"$output")" = 3 ] || complain "$output"
  run -2 zs-verify --iterations 1 --model_name tiny --reference merged
  [[ $output == *"--reference merged adds adapters to the weights: it needs --lora_rank or --lora_adapter"* ]] || complain "$output"
}

@test "adapters: what is frozen has no gradient, no optimizer state and no share of the gradients' bytes" {
  zs-train "${SMALL[@]}" --model_name tiny --max_steps 2 --zero_stage 0 --lora_rank 4 >log
  all=$(value model.parameters log) trained=$(value model.trained log)
  [ "$trained" = $((2 * 4 * (128 + 384 + 128 + 128 + 128 + 512 + 512 + 128))) ]
  [ "$(value ideal_state_bytes log)" = $((all * 4 + trained * 4 + trained * 8)) ]
  zs-checkpoint show --format json runs/*/final_checkpoint >show.json
  [ "$(jq -r '.kinds[] | select(.kind == "exp_avg") | .elements' show.json)" = "$trained" ]
  # In 4 bits: the matrices of a block of tiny-llama, held once more in full by the block that computes.
  zs-train "${SMALL[@]}" --model_name tiny-llama --max_steps 2 --zero_stage 0 --lora_rank 4 --save_final false >full
  zs-train "${SMALL[@]}" --model_name tiny-llama --max_steps 2 --zero_stage 0 --lora_rank 4 --save_final false --nf4 single >four
  held() { sed -n 's/^Summary: .* state_bytes: \([0-9]*\).*/\1/p' "$1"; }
  numbers=$((2 * 128 * 128 + 2 * 64 * 128 + 3 * 352 * 128)) saved=$(($(value ideal_state_bytes full) - $(value ideal_state_bytes four)))
  [ "$saved" = $((2 * numbers * 4 - 2 * numbers * 9 / 16 - numbers * 4)) ]
  [ $(($(held full) - $(held four))) = "$saved" ]
  # Between two ranks at stage 2: a sum of gradients, and what was updated.
  ranks 2 zs-train "${SMALL[@]}" --model_name tiny --max_steps 2 --zero_stage 2 --lora_rank 4 --save_final false >two
  [ "$(value ideal_comm_bytes two)" = $((trained * 4)) ]
  # A frozen first block ends backward: nothing is computed for it.
  zs-train "${SMALL[@]}" --model_name tiny --max_steps 1 --freeze wte,wpe,h.0 --print_plan >plan
  run grep -c "backward h.0" plan
  [ "$output" = 0 ]
  grep -q "backward h.1 @0" plan
}

@test "adapters: zs-train names once a trained parameter that does not change, with the reason" {
  zs-train "${SMALL[@]}" --model_name tiny --max_steps 4 --lora_rank 2 --save_final false >log
  run grep -c "are not trained" log
  [ "$output" = 0 ]
  # With lora_B frozen as zeros lora_A has no gradient, ever.
  zs-train "${SMALL[@]}" --model_name tiny --max_steps 4 --lora_rank 2 --freeze lora_B --weight_decay 0 --save_final false >log
  grep -q "note: after 2 updates 8 of 8 trained parameters are not trained: transformer.h.0.attn.c_attn.lora_A.weight (its gradient is zero), .* and 5 more" log
  [ "$(grep -c 'are not trained' log)" = 1 ]
  zs-train "${SMALL[@]}" --model_name tiny --max_steps 3 --learning_rate 1e-30 --weight_decay 0 --save_final false >log
  grep -q "its updates change no bit: the learning rate is small for its values" log
}

@test "adapters: a folder of peft is written, read and gone on with; a checkpoint is exported merged" {
  zs-train "${SMALL[@]}" --model_name tiny-llama --max_steps 3 --lora_rank 2 --lora_alpha 3 --lora_targets q_proj,o_proj --save_pretrained adapter >one
  [ "$(find adapter -type f -printf '%f\n' | sort | tr '\n' ' ')" = "adapter_config.json adapter_model.safetensors " ]
  [ "$(jq -c '[.peft_type, .r, .lora_alpha, .use_rslora, .bias, .target_modules]' adapter/adapter_config.json)" = '["LORA",2,3,false,"none",["o_proj","q_proj"]]' ]
  zs-train "${SMALL[@]}" --model_name tiny-llama --max_steps 1 --learning_rate 0 --lora_adapter adapter --save_pretrained again >two
  cmp adapter/adapter_model.safetensors again/adapter_model.safetensors
  [ "$(digest one)" = "$(digest two)" ]
  # The older form of the file.
  python_with torch python3-torch
  mkdir older
  cp adapter/adapter_config.json older
  "$PYTHON" -c '
import json, torch
data = bytearray(open("adapter/adapter_model.safetensors", "rb").read())
begin = 8 + int.from_bytes(data[:8], "little")
head = {name: row for name, row in json.loads(data[8:begin]).items() if name != "__metadata__"}
assert {row["dtype"] for row in head.values()} == {"F32"}
bytes_of = lambda first, end: data[begin + first : begin + end]
torch.save({name: torch.frombuffer(bytes_of(*row["data_offsets"]), dtype=torch.float32).reshape(row["shape"]) for name, row in head.items()}, "older/adapter_model.bin")'
  zs-train "${SMALL[@]}" --model_name tiny-llama --max_steps 1 --learning_rate 0 --lora_adapter older >two
  [ "$(digest one)" = "$(digest two)" ]
  # Merged it computes the same, to rounding.
  made=$(find runs -maxdepth 1 -name '2*' | sort | head -n 1)
  zs-runs export "$made" merged | grep -q "adapters merged into them"
  zs-train --model_name merged "${SMALL[@]:2}" --max_steps 1 --learning_rate 0 --save_final false >three
  loss() { sed -n 's/.*Loss: \([0-9.]*\).*/\1/p' "$1" | head -n 1; }
  echo "$(loss two) $(loss three)" | awk '{ d = $1 - $2; exit !(d < 1e-5 && d > -1e-5 && $1 > 1) }'
  run -2 zs-checkpoint convert --to hf "$made/final_checkpoint" hf
  [[ $output == *"has adapters (model.layers.0.self_attn.q_proj.lora_A.weight), which no class of transformers knows: zs-runs export RUN DIR merges"* ]] || complain "$output"
}

refuse() { refusal "$1" "${SMALL[*]} --model_name tiny-llama --max_steps 1 --save_final false ${*:2}"; }  # refuse MESSAGE OPTION...

@test "adapters: a run that wrote a folder goes on and writes it again, as often as it is resumed" {
  zs-train "${SMALL[@]}" --model_name tiny-llama --max_steps 2 --lora_rank 2 --save_pretrained adapter --run_name it >log
  for steps in 3 4 5; do
    zs-train --resume it --output_dir runs --max_steps $steps >log
    zs-checkpoint verify runs/*/final_checkpoint
    cp adapter/adapter_model.safetensors $steps
  done
  run -1 cmp -s 4 5
}

@test "adapters: what cannot be is refused by name" {
  refuse "--lora_targets: no product of the model is named 'q_porj', did you mean 'q_proj'?" --lora_rank 2 --lora_targets q_porj
  refuse "--lora_targets: zs has no adapters for 'lm_head'" --lora_rank 2 --lora_targets lm_head
  refuse "--modules_to_save: no module of the model is named 'heads'" --lora_rank 2 --modules_to_save heads
  refuse "--modules_to_save: transformer.wte is tied to the head" --model_name tiny --lora_rank 2 --modules_to_save wte
  refuse "--freeze: no parameter of the model is named 'embed_token', did you mean 'embed_tokens'?" --freeze embed_token
  refuse "--freeze: nothing is left to be trained" --freeze '*'
  refuse "--lora_alpha has no effect here: it needs --lora_rank; leave it out" --lora_alpha 2
  refuse "--nf4 has no effect here: it needs --lora_rank or --lora_adapter" --nf4 double
  refuse "model.nf4 is double, and dtype is float16: matrices of 4 bits are widened to 16 or 32 bits" --lora_rank 2 --nf4 double --dtype float16
  refuse "model.nf4 is single, and matrices of 4 bits stay in device memory: leave out --offload_param" --lora_rank 2 --nf4 single --zero_stage 3 --offload_param cpu
  refuse "--nf4: this model has no frozen matrix that bitsandbytes holds in 4 bits" --model_name tiny --lora_rank 2 --nf4 double
  refuse "some parameters are frozen" --freeze norm --zero_stage 3 --zero_quantized_gradients
  refuse "takes images, and adapters are for models of text: leave --lora_rank out" --model_name tiny-vit --lora_rank 2 --seq_length 1
  config() {
    adapter=adapter${#refusal_words[@]}
    mkdir "$adapter"
    jq -n "{peft_type: \"LORA\", r: 2, lora_alpha: 4, target_modules: [\"q_proj\"]} + $1" >"$adapter/adapter_config.json"
  }
  config '{lora_dropout: 0.1}'
  refuse "$adapter/adapter_config.json: lora_dropout is 0.1, zs knows 0.0" --lora_adapter "$adapter"
  config '{bias: "all"}'
  refuse "adapter_config.json: bias is \"all\", zs knows \"none\"" --lora_adapter "$adapter"
  config '{use_dora: true}'
  refuse "adapter_config.json: use_dora is not known, of a LoRA of peft" --lora_adapter "$adapter"
  config '{peft_type: "IA3"}'
  refuse "adapter_config.json: peft_type is \"IA3\", zs knows \"LORA\"" --lora_adapter "$adapter"
  config '{rank_pattern: {"q_proj": 4}}'
  refuse "adapter_config.json: rank_pattern is {\"q_proj\":4}" --lora_adapter "$adapter"
  config '{target_modules: ".*q_proj"}'
  refuse "target_modules is a regular expression" --lora_adapter "$adapter"
  zs-train "${SMALL[@]}" --model_name tiny-llama --max_steps 1 --lora_rank 2 --lora_alpha 32 --run_name sixteen >log
  for from in "--model_name tiny-llama --lora_rank 2 --checkpoint $(echo runs/*/final_checkpoint)" "--resume sixteen --lora_alpha 8"; do
    # shellcheck disable=SC2086
    run -2 zs-train "${SMALL[@]}" --max_steps 2 $from
    [[ $output == *"final_checkpoint/adapter_config.json: adapters count 16 times, and in this training 4 times: set --lora_alpha 32"* ]] || complain "$from: $output"
  done
  config '{target_modules: []}'
  refuse "$adapter/adapter_config.json: target_modules is empty: name the modules that have adapters" --lora_adapter "$adapter"
  config '{target_modules: ["q_porj"]}'
  refuse "$adapter/adapter_config.json: target_modules: no product of the model is named 'q_porj', did you mean 'q_proj'?" --lora_adapter "$adapter"
  config '{modules_to_save: ["heads"]}'
  refuse "$adapter/adapter_config.json: modules_to_save: no module of the model is named 'heads'" --lora_adapter "$adapter"
  config '{}'
  refuse "adapter_model.safetensors" --lora_adapter "$adapter"
  refuse "the rank of adapters is asked for" --lora_adapter "$adapter" --lora_rank 2
  # The first by zs-train itself.
  # shellcheck disable=SC2086
  run -2 zs-train ${refusal_options[0]}
  [[ $output == *"${refusal_words[0]}"* ]] || complain "$output"
  refused_each
  verdict
}
