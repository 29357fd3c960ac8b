# SPDX-License-Identifier: Apache-2.0
# Models by name and by folder, as Hugging Face's save_pretrained writes it: Llama beside GPT-2, from training to checkpoint and
# back. What transformers itself computes is compared in lib/train/peer_test.cpp.
setup_file() {
  load helper
  cd "$BATS_FILE_TMPDIR"
  # Two blocks of each family, trained a little: folders to begin with.
  zs-train --model_name tiny-llama --num_layers 2 --seq_length 32 --max_steps 3 --save_final false --save_pretrained llama --output_dir out >llama.log
  zs-train --model_name tiny --num_layers 2 --seq_length 32 --max_steps 3 --save_final false --save_pretrained gpt2 --output_dir out >gpt2.log
}

setup() {
  load helper
  cd "$BATS_FILE_TMPDIR"
}

digest() { sed -n 's/^state_digest: //p' "$1"; }

# train RANKS OPTION...: four micro-batches a step, on so many ranks.
train() {
  local ranks=$1
  shift
  timeout 120 mpirun --oversubscribe --bind-to none -n "$ranks" zs-train --seq_length 32 --max_steps 4 --save_final false --log_interval 4 \
    --gradient_accumulation_steps $((4 / ranks)) --output_dir out "$@"
}

# still OPTION...: a training that changes nothing.
still() { zs-train --seq_length 32 --max_steps 1 --learning_rate 0 --save_final false --output_dir out "$@"; }

@test "model: a Llama's folder has one digest at every stage, on 1, 2 and 4 ranks, compiled schedule or not" {
  for kernels in "" --compile; do
    # shellcheck disable=SC2086
    train 1 --model_name llama --dropout 0.1 --zero_stage 0 $kernels >first.log
    [[ $(digest first.log) =~ ^[0-9a-f]{32}$ ]]
    for layout in "1 3 --deepcompile" "2 0" "2 1 --deepcompile" "2 2" "4 3 --deepcompile --activation_checkpointing"; do
      read -r ranks stage schedule <<<"$layout"
      # shellcheck disable=SC2086
      train "$ranks" --model_name llama --dropout 0.1 --zero_stage "$stage" $kernels $schedule >log 2>err || complain "$layout $kernels: $(cat err)"
      [[ $(digest log) == "$(digest first.log)" ]] || complain "$layout $kernels: $(digest log)"
    done
  done
  verdict
}

@test "model: zs-verify finds a Llama exact, and a planted bit in it" {
  for stage in 1 3; do
    run -0 timeout 120 mpirun --oversubscribe --bind-to none -n 2 zs-verify --model_name tiny-llama --num_layers 2 --iterations 3 --zero_stage $stage
    [[ $output == *'verdict: exact'* ]] || complain "stage $stage: $output"
  done
  run -0 timeout 120 mpirun --oversubscribe --bind-to none -n 2 zs-verify --model_name llama --iterations 3 --zero_stage 3 --compile
  [[ $output == *'verdict: exact'* ]] || complain "folder: $output"
  run -1 zs-verify --model_name llama --iterations 3 --inject_fault 2:model.layers.1.self_attn.k_proj.weight:7
  [[ $output == *model.layers.1.self_attn.k_proj.weight* ]] || complain "planted: $output"
  verdict
}

@test "model: a folder's weights are what training begins with, and --save_pretrained writes them again" {
  for family in llama gpt2; do
    still --model_name $family --save_pretrained again-$family --save_initial initial >log
    [[ $(digest log) == "$(digest $family.log)" ]] || complain "$family: other bits"
    cmp $family/model.safetensors again-$family/model.safetensors || complain "$family: other weights"
    cmp $family/config.json again-$family/config.json || complain "$family: another config.json"
    run -0 zs-verify $family/model.safetensors initial/pytorch_model.bin
    # From ranks that have a part each, the same bytes.
    train 4 --model_name $family --zero_stage 3 --learning_rate 0 --save_pretrained parts-$family >log
    cmp $family/model.safetensors parts-$family/model.safetensors || complain "$family: other weights from parts"
  done
  verdict
}

@test "model: checkpoints of a Llama go on with the same bits, and are folders of a model themselves" {
  train 2 --model_name llama --max_steps 4 --save_steps 2 --save_final true --zero_stage 3 --output_dir runs >whole.log
  run=$(echo runs/2*)
  zs-train --model_name llama --seq_length 32 --max_steps 4 --gradient_accumulation_steps 4 --save_final false --output_dir out --zero_stage 1 \
    --checkpoint "$run/checkpoint_2" >rest.log
  [[ $(digest rest.log) == "$(digest whole.log)" ]] || complain "resumed: other bits"
  still --model_name "$run/final_checkpoint" >log
  [[ $(digest log) == "$(digest whole.log)" ]] || complain "as a model: other bits"
  run -2 zs-train --model_name tiny --seq_length 32 --output_dir out --checkpoint "$run/checkpoint_2"
  [[ $output == "zs-train: $run/checkpoint_2/"*'model_type is "llama", of the model "gpt2": it is a checkpoint of another model' ]] ||
    [[ $output == *"use --gradient_accumulation_steps 4"* ]] || complain "other model: $output"
  verdict
}

@test "model: --num_layers takes a folder's first blocks, and no more than there are" {
  for family in llama gpt2; do
    still --model_name $family --num_layers 1 --save_pretrained cut-$family >log
    still --model_name cut-$family >again.log
    [[ $(digest log) == "$(digest again.log)" ]] || complain "$family"
    run -2 still --model_name $family --num_layers 3
    [[ $output == "zs-train: $family/config.json: the model has 2 layers: --num_layers 3 can only leave some out" ]] || complain "$output"
  done
  verdict
}

# refused WORDS: a training from the folder `bad` ends with status 2 and exactly these words, before a run is made.
refused() {
  local -a words=("$@")
  run -2 zs-train --model_name bad --seq_length 32 --max_steps 1 --output_dir none
  [[ $output == "zs-train: ${words[0]}" ]] || complain "$output"
  [ ! -e none ] || complain "half begun: ${words[0]}"
}
# config FILTER: `bad` is the Llama with another config.json.
config() {
  rm -rf bad
  cp -r llama bad
  jq "$1" llama/config.json >bad/config.json
}

@test "model: a config.json that zs does not know, or that contradicts the weights, is told by key, tensor and shapes" {
  command -v jq >/dev/null || skip "jq is not installed"
  config '.model_type = "mamba"'
  refused "bad/config.json: model_type 'mamba' is not known (zs knows gpt2, llama, vit)"
  config 'del(.model_type)'
  refused "bad/config.json: model_type is missing (zs knows gpt2, llama, vit)"
  config '.rope_parameters.rope_type = "yarn"'
  refused "bad/config.json: rope_parameters.rope_type 'yarn' is not known (zs knows default, linear, llama3)"
  config 'del(.rope_parameters) | .rope_scaling = {"type": "dynamic", "factor": 2}'
  refused "bad/config.json: rope_scaling.type 'dynamic' is not known (zs knows default, linear, llama3)"
  config '.rope_parameters = {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8, "low_freq_factor": 1}'
  refused "bad/config.json: rope_parameters.high_freq_factor is missing, which rope_type 'llama3' needs"
  config '.hidden_act = "relu"'
  refused 'bad/config.json: hidden_act is "relu", zs knows "silu"'
  config '.quantization_config = {"bits": 4}'
  refused "bad/config.json: quantization_config is set: zs reads weights of 16 bits and more, give it the model as it was"
  config '.num_key_value_heads = 3'
  refused "bad/config.json: num_key_value_heads is 3, which does not divide num_attention_heads 4"
  config '.head_dim = 31'
  refused "bad/config.json: head_dim is 31: halves are rotated, so it must be even"
  config '.hidden_size = "wide"'
  refused 'bad/config.json: hidden_size is "wide", expected a whole number from 1 on'
  config '.rms_norm_eps = null | .vocab_size = -1'
  refused "bad/config.json: vocab_size is -1, expected a whole number from 1 on"
  config '.num_key_value_heads = 4'
  refused "bad/model.safetensors: model.layers.0.self_attn.k_proj.weight has the shape [64, 128], the model [128, 128] by num_key_value_heads, head_dim, hidden_size, unlike its config.json"
  config '.vocab_size = 300'
  refused "bad/model.safetensors: model.embed_tokens.weight has the shape [256, 128], the model [300, 128] by vocab_size, hidden_size, unlike its config.json"
  config '.num_hidden_layers = 3'
  refused "bad/model.safetensors: no tensor 'model.layers.2.input_layernorm.weight', did you mean 'model.layers.0.input_layernorm.weight'?"
  config '.num_hidden_layers = 1'
  refused "bad/model.safetensors: has model.layers.1.input_layernorm.weight, which the model has not, unlike its config.json"
  config '.tie_word_embeddings = true'
  refused "bad/model.safetensors: lm_head.weight is not model.embed_tokens.weight, to which this model ties it"
  echo '{' >bad/config.json
  run -2 still --model_name bad
  [[ $output == "zs-train: bad/config.json: "*"parse error"* ]] || complain "$output"
  echo '[]' >bad/config.json
  refused "bad/config.json: is no JSON object"
  verdict
}

@test "model: weights that are missing, torn or of another rank's folder are told; init_type begins without them" {
  config .
  truncate -s -4 bad/model.safetensors
  run -2 still --model_name bad
  [[ $output == "zs-train: bad/model.safetensors: "* ]] || complain "torn: $output"
  rm bad/model.safetensors
  refused "bad: no weights in this folder, looked for model.safetensors, model.safetensors.index.json, pytorch_model.bin, pytorch_model.bin.index.json"
  still --model_name bad --init_type normal >log
  still --model_name tiny-llama --num_layers 2 >named.log
  [[ $(digest log) == "$(digest named.log)" ]] || complain "begun anew: other bits"
  echo '{"weight_map": {"model.norm.weight": "model-00002-of-00002.safetensors"}}' >bad/model.safetensors.index.json
  refused "bad/model-00002-of-00002.safetensors: No such file or directory"
  run -2 still --model_name gpt3
  [[ $output == "zs-train: model 'gpt3' is no folder, and not known, did you mean 'gpt2'? (there are tiny, gpt2, "* ]] || complain "$output"
  mkdir -p a b
  cp -r llama a/model
  cp -r llama b/model
  still --model_name llama --learning_rate 0.1 --save_pretrained b/other >log
  cp b/other/model.safetensors b/model/
  run -2 --separate-stderr timeout 120 mpirun --oversubscribe --bind-to none -n 1 --wdir "$PWD/a" zs-train --model_name model --seq_length 32 --max_steps 1 --output_dir out : \
    -n 1 --wdir "$PWD/b" zs-train --model_name model --seq_length 32 --max_steps 1 --output_dir out
  [[ $stderr == *"model: the ranks differ in the weights: rank 0 on "* ]] || complain "$stderr"
  verdict
}

@test "model: --save_pretrained does not mix with weights that are there in another form" {
  mkdir -p mixed
  touch mixed/pytorch_model.bin
  run -2 still --model_name llama --save_pretrained mixed
  [[ $output == "zs-train: mixed/pytorch_model.bin: is there already: give --save_pretrained an empty folder" ]] || complain "$output"
  [ ! -e mixed/config.json ] || complain "half written"
  verdict
}

@test "model: a token file is trained on as its text is; ids that the model does not know, and a file cut short, are told" {
  head -c 20000 /usr/share/common-licenses/GPL-3 >text
  python3 -c 'import sys; sys.stdout.buffer.write(b"".join(bytes((b, 0)) for b in open("text", "rb").read()))' >text.bin 2>/dev/null ||
    skip "python3 is not installed"
  zs-train --model_name llama --seq_length 32 --max_steps 3 --save_final false --output_dir out --dataset text >text.log
  zs-train --model_name llama --seq_length 32 --max_steps 3 --save_final false --output_dir out --dataset text.bin >ids.log
  [[ $(digest ids.log) == "$(digest text.log)" ]] || complain "other bits"
  grep -q "run: dataset_tokens=20000" ids.log || complain "other tokens"
  printf '\0\1' >>text.bin
  run -2 still --model_name llama --dataset text.bin
  [[ $output == "zs-train: text.bin: "*256* ]] || complain "an id too large: $output"
  printf '\0' >>text.bin
  run -2 still --model_name llama --dataset text.bin
  [[ $output == "zs-train: text.bin: "* ]] || complain "cut short: $output"
  verdict
}
