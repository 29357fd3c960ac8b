# SPDX-License-Identifier: Apache-2.0
# Models by name and by folder, as Hugging Face's save_pretrained writes it: from training to checkpoint and back.
# lib/training/train/peer_test.cpp compares with transformers.
setup_file() {
  load helper
  warm
  cd "$BATS_FILE_TMPDIR"
  # Two blocks of each family, trained a little: folders to begin with.
  for name in qwen2 qwen3 mistral olmo2 phi3 gemma2 gemma3 mixtral qwen3-moe gpt-oss; do
    zs-train --model_name tiny-$name --num_layers 2 --seq_length 32 --max_steps 3 --save_final false --save_pretrained $name --output_dir out >$name.log
  done
  zs-train --model_name tiny-llama --num_layers 2 --seq_length 32 --max_steps 3 --save_final false --save_pretrained llama --output_dir out >llama.log
  zs-train --model_name tiny --num_layers 2 --seq_length 32 --max_steps 3 --save_final false --save_pretrained gpt2 --output_dir out >gpt2.log
}

setup() {
  load helper
  warm
  load digests
  cd "$BATS_FILE_TMPDIR"
}

digest() { sed -n 's/^state_digest: //p' "$1"; }

# train RANKS OPTION...: four micro-batches a step, on so many ranks.
train() {
  local ranks=$1
  shift
  timeout "$HANG" mpirun --oversubscribe --bind-to none -n "$ranks" zs-train --seq_length 32 --max_steps 4 --save_final false --log_interval 4 \
    --gradient_accumulation_steps $((4 / ranks)) --output_dir out "$@"
}

# noted GROUP RANKS OPTIONS: the same, for one_digest_each.
noted() {
  training "$1" "$2" "--seq_length 32 --max_steps 4 --save_final false --gradient_accumulation_steps $((4 / $2)) --output_dir out $3"
}

# still OPTION...: a training that changes nothing.
still() { zs-train --seq_length 32 --max_steps 1 --learning_rate 0 --save_final false --output_dir out "$@"; }

@test "model: a Llama's folder has one digest at every stage, on 1, 2 and 4 ranks, compiled schedule or not" {
  for kernels in "" --compile; do
    for layout in "1 0" "1 3 --deepcompile" "2 0" "2 1 --deepcompile" "2 2" "4 3 --deepcompile --activation_checkpointing"; do
      read -r ranks stage schedule <<<"$layout"
      noted "llama$kernels" "$ranks" "--model_name llama --dropout 0.1 --zero_stage $stage $kernels $schedule"
    done
  done
  run -0 one_digest_each
}

@test "model: zs-verify finds a Llama and a folder of every family of decoders exact, and a planted bit" {
  for stage in 1 3; do
    verified stage-$stage 2 "--model_name tiny-llama --num_layers 2 --iterations 3 --zero_stage $stage"
  done
  verified folder 2 "--model_name llama --iterations 3 --zero_stage 3 --compile"
  for family in qwen2 qwen3 mistral olmo2 phi3 gemma2 gemma3 mixtral qwen3-moe gpt-oss; do
    case $family in mixtral | *-moe | *-oss) steps=8 ;; *) steps=3 ;; esac # until each expert has had a token
    verified $family 2 "--model_name $family --iterations $steps --zero_stage 2 --compile"
  done
  run -0 all_exact 13
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

@test "model: a folder of every family of decoders: the same weights again, one digest, a checkpoint to go on from" {
  for family in qwen2 qwen3 mistral olmo2 phi3 gemma2 gemma3 mixtral qwen3-moe gpt-oss; do
    still --model_name $family --save_pretrained again-$family >log
    [[ $(digest log) == "$(digest $family.log)" ]] || complain "$family: other bits"
    cmp $family/model.safetensors again-$family/model.safetensors || complain "$family: other weights"
    cmp $family/config.json again-$family/config.json || complain "$family: another config.json"
    # Of each family one kind of kernels; both of all families: lib/training/train/exact_test.cpp.
    kernels=$([[ $kernels ]] || echo --compile)
    noted "$family" 1 "--model_name $family --zero_stage 0 --max_steps 2 $kernels"
    noted "$family" 4 "--model_name $family --zero_stage 3 --max_steps 2 --deepcompile --offload_device cpu $kernels"
    train 2 --model_name $family --save_steps 2 --save_final true --zero_stage 3 --registry runs-$family >whole.log
    run=$(echo runs-$family/2*)
    train 1 --model_name $family --zero_stage 1 --checkpoint "$run/checkpoint_2" >rest.log
    [[ $(digest rest.log) == "$(digest whole.log)" ]] || complain "$family: resumed: other bits"
    ZS_REGISTRY=runs-$family zs-runs export "${run##*/}" exported-$family
    still --model_name exported-$family >log
    [[ $(digest log) == "$(digest whole.log)" ]] || complain "$family: exported: other bits"
  done
  run -0 one_digest_each
  verdict
}

@test "model: the auxiliary loss of experts is as asked for; of a model without experts it is refused; zs-verify names a planted bit of one" {
  still --model_name mixtral >asked.log
  still --model_name mixtral --router_aux_loss_coef 0.001 >same.log
  still --model_name mixtral --router_aux_loss_coef 0 >without.log
  loss() { sed -n 's/.*Loss: \([^ ]*\) .*/\1/p' "$1" | head -n 1; }
  [[ $(loss asked.log) == "$(loss same.log)" ]] || complain "as config.json says: $(loss asked.log), given: $(loss same.log)"
  awk -v with="$(loss asked.log)" -v without="$(loss without.log)" 'BEGIN { exit !(with - without > 0.0015 && with - without < 0.004) }' ||
    complain "with: $(loss asked.log), without: $(loss without.log)"
  grep -q 'run: model.active=' asked.log || complain "not told: parameters that a token meets"
  run -2 zs-train --model_name tiny --router_aux_loss_coef 0.1 --output_dir none
  [[ $output == "zs-train: --router_aux_loss_coef has no effect here: it needs a model with experts; leave it out" ]] || complain "$output"
  run -1 zs-verify --model_name mixtral --iterations 3 --inject_fault 2:model.layers.1.block_sparse_moe.experts.2.w3.weight:7
  [[ $output == *model.layers.1.block_sparse_moe.experts.2.w3.weight* ]] || complain "planted: $output"
  verdict
}

# noted_still KIND FAMILY FILTER [WORDS]: notes a training of one step from the family's folder with another config.json, for
# `as_noted`. By KIND it has `other` bits than the folder itself, the `same` bits, or is refused (`bad`) with exactly these WORDS.
declare -gA plain=()
noted_still() {
  [[ $1 == @(bad|plain) || ${plain[$2]:-} ]] || noted_still plain "$2" .
  cp -r "$2" "bad$((++stills))"
  jq "$3" "$2/config.json" >"bad$stills/config.json"
  echo "$stills --seq_length 32 --max_steps 1 --learning_rate 1e-3 --save_final false --output_dir out --model_name bad$stills" >>stills
  kinds[stills]=$1 families[stills]=$2 filters[stills]=$3 words[stills]=${4:-}
  [[ $1 != plain ]] || plain[$2]=$stills
}
changed() { noted_still other "$@"; }  # keys that change what is computed
kept() { noted_still same "$@"; }      # keys of published files that transformers' class does not read
bad() { noted_still bad "$@"; }
# as_noted: trains what is noted, in one program, and says what of it is otherwise.
as_noted() {
  local i got expected
  digests stills 1 >came
  for ((i = 1; i <= stills; ++i)); do
    got=$(sed -n "s/^$i //p" came)
    expected=$(sed -n "s/^${plain[${families[i]}]:-0} //p" came)
    case ${kinds[i]} in
      bad) [[ $got == "! ${words[i]/bad\//bad$i/}" ]] ;;
      other) [[ $got =~ ^[0-9a-f]{32}$ && $got != "$expected" ]] ;;
      *) [[ $got =~ ^[0-9a-f]{32}$ && $got == "$expected" ]] ;;
    esac || complain "${kinds[i]} ${families[i]} ${filters[i]}: $got"
  done
  rm -r bad[0-9]* stills
}

@test "model: keys that a family has of its own are honoured or refused" {
  command -v jq >/dev/null || no_package jq
  changed qwen2 '.use_sliding_window = false | .layer_types = null'
  changed qwen2 '.layer_types = ["sliding_attention", "sliding_attention"]'
  changed mistral '.sliding_window = null'
  changed mistral '.sliding_window = 9'
  changed phi3 '.sliding_window = null'
  changed gemma2 '.attn_logit_softcapping = 0.01'
  changed gemma2 '.final_logit_softcapping = null'
  changed gemma2 '.query_pre_attn_scalar = 1'
  changed gemma2 '.layer_types = ["full_attention", "full_attention"]'
  changed gemma3 '.rope_local_base_freq = 100 | del(.rope_parameters)'
  kept llama '.is_llama_config = true | .rope_interleaved = false | .["transformers.js_config"] = {dtype: "q4"} | .unsloth_fixed = true'
  kept phi3 '.full_attn_mod = 1 | .interpolate_factor = 1 | .lm_head_bias = false | .mlp_bias = false'
  bad qwen2 '.layer_types = ["full_attention"]' "bad/config.json: layer_types is not a list of num_hidden_layers texts"
  bad qwen2 '.layer_types[1] = "chunked_attention"' 'bad/config.json: layer_types has "chunked_attention", zs knows full_attention and sliding_attention'
  bad qwen2 '.use_sliding_window = false' "bad/config.json: layer_types has sliding_attention, but sliding_window is not in use"
  bad olmo2 '.sliding_window = 8' "bad/config.json: sliding_window is not known, of a model of type olmo2: what it changes zs does not compute, leave it out if that is nothing"
  bad gemma2 '.hidden_activation = "gelu"' 'bad/config.json: hidden_activation is "gelu", zs knows "gelu_pytorch_tanh"'
  bad gemma3 '.use_bidirectional_attention = true' 'bad/config.json: use_bidirectional_attention is true, zs knows false'
  bad gemma3 '.attn_logit_softcapping = 50' "bad/config.json: attn_logit_softcapping is not known, of a model of type gemma3_text: what it changes zs does not compute, leave it out if that is nothing"
  changed mixtral '.num_experts_per_tok = 1'
  changed mixtral '.router_aux_loss_coef = 1'
  changed mixtral '.output_router_logits = false'
  changed qwen3-moe '.norm_topk_prob = false'
  changed gpt-oss '.swiglu_limit = 0.01'
  changed gpt-oss '.swiglu_alpha = 0.1'
  bad mixtral '.num_experts_per_tok = 5' "bad/config.json: num_experts_per_tok is 5, of 4 experts"
  bad mixtral '.num_local_experts = 1000000' "bad/config.json: num_local_experts is 1000000, expected at most 16384"
  bad mixtral '.router_jitter_noise = 0.1' "bad/config.json: router_jitter_noise is 0.1, zs knows 0"
  bad qwen3-moe '.mlp_only_layers = ["0"]' 'bad/config.json: mlp_only_layers is ["0"], expected a list of numbers of layers'
  bad qwen3-moe '.shared_expert_intermediate_size = 8' "bad/config.json: shared_expert_intermediate_size is not known, of a model of type qwen3_moe: what it changes zs does not compute, leave it out if that is nothing"
  bad gpt-oss '.quantization_config = {"quant_method": "mxfp4"}' "bad/config.json: quantization_config is mxfp4: zs reads weights of 16 bits and more, give it the model as transformers' Mxfp4Config(dequantize=True) loads and saves it"
  bad mistral '.sliding_window = 0' "bad/config.json: sliding_window is 0, expected a whole number from 1 on"
  as_noted
  run -2 zs-train --model_name mistral --seq_length 32 --output_dir out --checkpoint qwen2
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
  command -v jq >/dev/null || no_package jq
  bad llama '.model_type = "mamba"' "bad/config.json: model_type 'mamba' is not known (zs knows gpt2, llama, qwen2, qwen3, mistral, olmo2, phi3, gemma2, gemma3_text, mixtral, qwen3_moe, gpt_oss, vit)"
  bad llama 'del(.model_type)' "bad/config.json: model_type is missing (zs knows gpt2, llama, qwen2, qwen3, mistral, olmo2, phi3, gemma2, gemma3_text, mixtral, qwen3_moe, gpt_oss, vit)"
  bad llama '.rope_parameters.rope_type = "proportional"' "bad/config.json: rope_parameters.rope_type 'proportional' is not known (zs knows default, linear, dynamic, llama3, yarn, longrope)"
  bad llama 'del(.rope_parameters) | .rope_scaling = {"type": "longrope", "factor": 2, "short_factor": [1]}' "bad/config.json: rope_scaling.long_factor is missing, which rope_type 'longrope' needs"
  bad llama '.rope_parameters = {"rope_type": "longrope", "short_factor": [1], "long_factor": [2]}' "bad/config.json: rope_scaling has lists of 1 factors, expected 16, half of what is rotated"
  bad llama '.rope_parameters.partial_rotary_factor = 0.5' "bad/config.json: rope_parameters.partial_rotary_factor is 0.5, zs knows 1 of this model_type"
  bad llama '.rope_parameters.wavelength = 3' "bad/config.json: rope_parameters.wavelength is not known, of rotary positions: what it changes zs does not compute, leave it out if that is nothing"
  bad llama '.residual_multiplier = 0.22 | .use_mrope = false' "bad/config.json: residual_multiplier is not known, of a model of type llama: what it changes zs does not compute, leave it out if that is nothing"
  bad llama '.rope_parameters = {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8, "low_freq_factor": 1}' "bad/config.json: rope_parameters.high_freq_factor is missing, which rope_type 'llama3' needs"
  bad llama '.rope_scaling = {"type": "linear", "factor": 2}' 'bad/config.json: rope_scaling is {"factor":2,"type":"linear"}, unlike rope_parameters: leave one of them out'
  bad llama '.hidden_act = "relu"' 'bad/config.json: hidden_act is "relu", zs knows "silu"'
  bad llama '.quantization_config = {"bits": 4}' "bad/config.json: quantization_config is set: zs reads weights of 16 bits and more, and bitsandbytes' NF4: give it the model as it was"
  bad llama '.num_key_value_heads = 3' "bad/config.json: num_key_value_heads is 3, which does not divide num_attention_heads 4"
  bad llama '.head_dim = 31' "bad/config.json: head_dim is 31: halves are rotated, so it must be even"
  bad llama '.hidden_size = "wide"' 'bad/config.json: hidden_size is "wide", expected a whole number from 1 on'
  bad llama '.rms_norm_eps = null | .vocab_size = -1' "bad/config.json: vocab_size is -1, expected a whole number from 1 on"
  bad llama '.num_key_value_heads = 4' "bad/model.safetensors: model.layers.0.self_attn.k_proj.weight has the shape [64, 128], the model [128, 128] by num_key_value_heads, head_dim, hidden_size, unlike its config.json"
  bad llama '.vocab_size = 300' "bad/model.safetensors: model.embed_tokens.weight has the shape [256, 128], the model [300, 128] by vocab_size, hidden_size, unlike its config.json"
  bad llama '.num_hidden_layers = 3' "bad/model.safetensors: no tensor 'model.layers.2.input_layernorm.weight', did you mean 'model.layers.0.input_layernorm.weight'?"
  bad llama '.num_hidden_layers = 1' "bad/model.safetensors: has model.layers.1.input_layernorm.weight, which the model has not, unlike its config.json"
  bad llama '.num_hidden_layers = 1000000000' "bad/config.json: has 1000000000 layers, expected 1 to 100000"
  bad llama '.tie_word_embeddings = true' "bad/model.safetensors: lm_head.weight is not model.embed_tokens.weight, to which this model ties it"
  as_noted
  config .
  echo '{' >bad/config.json
  run -2 still --model_name bad
  [[ $output == "zs-train: bad/config.json: "*"parse error"* ]] || complain "$output"
  echo '[]' >bad/config.json
  refused "bad/config.json: is not a JSON object"
  verdict
}

@test "model: weights that are missing, torn or of another rank's folder are told; init_type begins without them" {
  config .
  truncate -s -4 bad/model.safetensors
  run -2 still --model_name bad
  [[ $output == "zs-train: bad/model.safetensors: "* ]] || complain "torn: $output"
  LC_ALL=C sed '1s/"dtype":"F32"/"dtype":"I32"/' llama/model.safetensors >bad/model.safetensors
  refused "bad/model.safetensors: lm_head.weight is of i32: weights of f16, bf16, f32 and f64 are read"
  echo 'version https://git-lfs.github.com/spec/v1' >bad/model.safetensors
  refused "bad/model.safetensors: is Git LFS's pointer to the file: fetch the file itself, by git lfs pull"
  rm bad/model.safetensors
  refused "bad: no weights in this folder, looked for model.safetensors, model.safetensors.index.json, pytorch_model.bin, pytorch_model.bin.index.json"
  still --model_name bad --init_type normal >log
  still --model_name tiny-llama --num_layers 2 >named.log
  [[ $(digest log) == "$(digest named.log)" ]] || complain "begun anew: other bits"
  echo '{"weight_map": {"model.norm.weight": "model-00002-of-00002.safetensors"}}' >bad/model.safetensors.index.json
  refused "bad/model-00002-of-00002.safetensors: No such file or directory"
  run -2 still --model_name gpt3
  [[ $output == "zs-train: model 'gpt3' is not a folder, and not known, did you mean 'gpt2'? (there are tiny, gpt2, "* ]] || complain "$output"
  mkdir -p a b
  cp -r llama a/model
  cp -r llama b/model
  still --model_name llama --learning_rate 0.1 --save_pretrained b/other >log
  cp b/other/model.safetensors b/model/
  run -2 --separate-stderr timeout "$HANG" mpirun --oversubscribe --bind-to none -n 1 --wdir "$PWD/a" zs-train --model_name model --seq_length 32 --max_steps 1 --output_dir out : \
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
    no_package python3
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

@test "model: --packing masked: documents see nothing of each other, one digest, the mean is over all targets wherever they are" {
  python3 -c '
import json
for i in range(200): print(json.dumps({"text": "document %d " % i + "word " * (i * 7 % 23)}))' >documents.jsonl 2>/dev/null || no_package python3
  documents="--dataset documents.jsonl --packing masked --seq_length 64"
  for model in tiny tiny-gemma3; do
    for kernels in "" --compile; do
      for layout in "1 0" "2 2 --activation_checkpointing" "4 3 --deepcompile"; do
        read -r ranks stage schedule <<<"$layout"
        training "$model$kernels" "$ranks" "$documents --num_layers 2 --dropout 0.1 --max_steps 3 --save_final false --output_dir out \
          --gradient_accumulation_steps $((4 / ranks)) --model_name $model --zero_stage $stage $kernels $schedule"
      done
    done
  done
  run -0 one_digest_each
  [ "${#lines[@]}" = 4 ] || complain "$output"
  # The program itself, and what it notes.
  # shellcheck disable=SC2086
  timeout "$HANG" mpirun --oversubscribe --bind-to none -n 2 zs-train $documents --num_layers 2 --dropout 0.1 --max_steps 3 --save_final false --output_dir out \
    --gradient_accumulation_steps 2 --model_name tiny-gemma3 --zero_stage 3 --compile >log
  [[ "tiny-gemma3--compile $(digest log)" == "${lines[3]}" ]] || complain "$(digest log) beside $output"
  grep -q 'note: packing masked: 200 documents in [0-9]* sequences of 64 tokens, [0-9.]* % of them padding' log || complain "no note: $(grep note log)"
  for model in tiny tiny-gemma3; do
    verified $model 2 "--model_name $model $documents --iterations 2 --zero_stage 2"
  done
  run -0 all_exact 2
  for model in tiny tiny-gemma3; do
    verified $model 2 "--model_name $model $documents --iterations 2 --zero_stage 3 --compile --reference apart"
  done
  run -0 verdicts
  [ "$(grep -c ' status 0; verdict: within.*computes each document alone' <<<"$output")" = 2 ] || complain "zs-verify apart: $output"

  # The same samples of a step in micro-batches of another size: the same loss and norm up to rounding.
  for cut in "1 8" "2 4" "8 1"; do
    read -r batch micro <<<"$cut"
    zs-train --model_name tiny --num_layers 2 --dataset documents.jsonl --packing masked --seq_length 64 --max_steps 1 --log_interval 1 --save_final false \
      --output_dir out --device cpu --batch_size "$batch" --gradient_accumulation_steps "$micro" | sed -n 's/.*Loss: \([^ ]*\) .*grad_norm: \([^ ]*\) .*tokens: \([0-9]*\) .*/\1 \2 \3/p' >>cuts
  done
  awk 'NR == 1 { l = $1; n = $2; t = $3 } { if (($1 - l)^2 > 1e-12 * l^2 || ($2 - n)^2 > 1e-10 * n^2 || $3 != t) bad = 1 } END { exit bad || NR != 3 }' cuts || complain "cut otherwise: $(cat cuts)"
  run -2 zs-verify --model_name tiny-vit --reference apart --iterations 1
  [[ $output == "zs-verify: --reference apart computes each document alone: it needs a model that takes text"* ]] || complain "$output"
  run -2 zs-verify --model_name tiny --reference apart --iterations 1
  [[ $output == "zs-verify: --reference apart computes each document alone, and joined documents are one: give --packing masked, or none"* ]] || complain "$output"
  run -2 zs-verify --model_name tiny --reference apart --dataset documents.jsonl --packing masked --dropout 0.1 --iterations 1
  [[ $output == "zs-verify: --reference apart drops other elements, because it computes each document alone: leave --dropout out"* ]] || complain "$output"
  verdict
}

@test "model: --packing none begins a sequence with each document: one digest, exact, resumable, its padding in no loss" {
  python3 -c '
import json
for i in range(200): print(json.dumps({"text": "document %d " % i + "word " * (i * 7 % 23)}))' >documents.jsonl 2>/dev/null || no_package python3
  packed() { train "$@" --model_name llama --dataset documents.jsonl --packing none --dropout 0.1; }
  for kernels in "" --compile; do
    for layout in "1 0" "1 3 --deepcompile" "2 2" "4 3 --deepcompile --activation_checkpointing"; do
      read -r ranks stage schedule <<<"$layout"
      noted "packed$kernels" "$ranks" "--model_name llama --dataset documents.jsonl --packing none --dropout 0.1 --zero_stage $stage $kernels $schedule"
    done
  done
  run -0 one_digest_each
  [ "${#lines[@]}" = 2 ] || complain "$output"
  verified none 2 "--model_name llama --dataset documents.jsonl --packing none --iterations 3 --zero_stage 2"
  run -0 all_exact 1

  packed 2 --save_steps 2 --save_final true --zero_stage 3 --output_dir padded >whole.log
  run=$(echo padded/2*)
  packed 1 --zero_stage 1 --checkpoint "$run/checkpoint_2" >rest.log
  [[ $(digest rest.log) == "$(digest whole.log)" ]] || complain "resumed: other bits"
  grep -q 'note: packing none: 200 documents in [0-9]* sequences of 32 tokens, [0-9]* % of them padding' whole.log || complain "no note: $(grep note whole.log)"
  run -2 train 2 --model_name llama --dataset documents.jsonl --packing whole --checkpoint "$run/checkpoint_2"
  [[ $output == *"$run/checkpoint_2: was made with other samples: documents.jsonl has changed, or one of these options has: "*" --packing, --too_long, --loss_on, "* ]] || complain "$output"
  grep -q 'run: packing=none' whole.log || complain "not recorded"
  zs-train --model_name llama --seq_length 32 --dataset documents.jsonl --max_steps 1 --save_final false --output_dir out >joined.log
  grep -q 'run: packing=whole' joined.log || complain "not recorded: whole"
  tokens=$(zs-parse whole.log | awk -F '\t' '!/^#/ && !head { for (i = 1; i <= NF; ++i) at[$i] = i; head = 1; next } !/^#/ { print $at["tokens"] }' | head -n 1)
  ((tokens > 0 && tokens < 128)) || complain "tokens of a step: $tokens"  # 128 with the padding

  # What is held out: the mean over the targets that are there.
  zs-train --model_name llama --seq_length 32 --dataset documents.jsonl --packing none --batch_size 3 --eval_only --dump_logits logits.h5 >evaluated
  run -0 /usr/bin/python3 -c '
import h5py, numpy
f = h5py.File("logits.h5")
logits, targets = f["logits"][:].astype("f8"), f["targets"][:]
logits -= logits.max(-1, keepdims=True)
losses = numpy.log(numpy.exp(logits).sum(-1)) - numpy.take_along_axis(logits, targets.clip(0)[..., None], -1)[..., 0]
assert (targets < 0).any() and set(targets[targets < 0]) == {-100}
samples = f["sample"][:]  # the last tenth of all
assert len(samples) == len(targets) == (samples[-1] + 1) // 10 and (numpy.diff(samples) == 1).all(), samples
assert (f["input_ids"][:, 1:] == targets[:, :-1])[targets[:, 1:] >= 0].all()  # targets are the next inputs, but for the last
print(losses[targets >= 0].mean())'
  awk -v ours="$(sed -n 's/^validation: loss: \([0-9.]*\).*/\1/p' evaluated)" -v theirs="$output" 'BEGIN { exit !((ours - theirs)^2 < 1e-12) }' ||
    complain "evaluated: $(cat evaluated), numpy says $output"

  run -2 zs-train --model_name tiny-vit --packing none --output_dir none
  [[ $output == "zs-train: --packing has no effect here: it needs a model that takes text; leave it out" ]] || complain "$output"
  verdict
}
