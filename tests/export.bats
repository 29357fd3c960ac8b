# SPDX-License-Identifier: Apache-2.0
# zs-runs export: a run's checkpoint as a folder of Hugging Face.
setup_file() {
  load helper
  warm
  [ -x "$BUILD/zs-train" ] || return 0
  cd "$BATS_FILE_TMPDIR"
  mkdir tokens
  cp "$ROOT/tests/token/gpt2.json" tokens/tokenizer.json
  for _ in {1..400}; do echo "a text to train on, and to be cut into tokens"; done >d.txt
  zs-train --model_name tiny --num_layers 1 --seq_length 16 --dataset d.txt --tokenizer tokens --max_steps 4 --save_steps 2 \
    --registry runs --run_name first --save_pretrained reference >log
}

setup() {
  load helper
  warm
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built: make build/zs-train"
  cd "$BATS_FILE_TMPDIR"
  export ZS_REGISTRY=runs
  run=$(realpath runs/2*)
}

@test "export: the final checkpoint and tokenizer have the bytes that --save_pretrained writes" {
  run -0 zs-runs export first out
  [[ $output == "out: "*" tensors of "*/final_checkpoint", with its tokenizer" ]]
  [ "$(ls out | xargs)" = "config.json model.safetensors tokenizer.json" ]
  cmp out/model.safetensors reference/model.safetensors
  cmp out/config.json reference/config.json
  zs-train --model_name tiny --num_layers 1 --seq_length 16 --dataset d.txt --tokenizer tokens --print_model_config | cmp - out/config.json
  [ "$(zs-train --model_name Meta-Llama-3-70B --print_model_config | jq .num_hidden_layers)" = 80 ] # larger than memory
  cmp out/tokenizer.json tokens/tokenizer.json
}

@test "export: zs-verify finds the same bits as in the checkpoint, and zs-train starts from it" {
  zs-runs export "$run" bits
  run -0 zs-verify bits/model.safetensors "$run/final_checkpoint/pytorch_model.bin"
  [[ $output == *"verdict: exact"* ]]
  zs-train --model_name bits --seq_length 16 --dataset d.txt --max_steps 1 --save_final false --registry other --save_initial begun >log2
  run -0 zs-verify begun/pytorch_model.bin "$run/final_checkpoint/pytorch_model.bin"
  [[ $output == *"verdict: exact"* ]]
}

@test "export: first and last tokens and the chat template come from the model's folder" {
  cp -r reference named
  jq '.bos_token_id = 5 | .eos_token_id = 7' reference/config.json >named/config.json
  echo '{"eos_token_id": 7}' >named/generation_config.json
  echo '{{ messages[0].content }}' >named/chat_template.jinja
  zs-train --model_name named --seq_length 16 --dataset d.txt --max_steps 1 --registry ids --run_name ids --save_pretrained saved >log3
  zs-runs -r ids export ids exported
  for folder in saved exported; do
    [ "$(jq -c '[.bos_token_id, .eos_token_id]' $folder/config.json)" = '[5,7]' ]
    cmp $folder/generation_config.json named/generation_config.json
    cmp $folder/chat_template.jinja named/chat_template.jinja
  done
}

@test "export: torch_dtype is the type of the tensors in the file" {
  [ "$(jq -r .torch_dtype "$run/final_checkpoint/config.json")" = float32 ]
  zs-runs export "$run" format
  run -0 python3 -c 'import json, struct; f = open("format/model.safetensors", "rb"); n, = struct.unpack("<Q", f.read(8)); print({each["dtype"] for name, each in json.loads(f.read(n)).items() if name != "__metadata__"})'
  [ "$output" = "{'F32'}" ]
  [ "$(jq -r .torch_dtype format/config.json)" = float32 ]
}

@test "export: --checkpoint takes a step or a name" {
  zs-runs export first two --checkpoint 2
  zs-runs export first too --checkpoint checkpoint_2
  cmp two/model.safetensors too/model.safetensors
  run -0 zs-verify two/model.safetensors "$run/checkpoint_2/pytorch_model.bin"
  run -1 cmp -s two/model.safetensors reference/model.safetensors
}

@test "export: wrong arguments are rejected, and no file is overwritten" {
  run -2 --separate-stderr zs-runs export "$run" none --checkpoint checkpoint_3
  [[ $stderr == "zs-runs: "*"${run##*/}: has no checkpoint_3: name one of checkpoint_2, "*"final_checkpoint with --checkpoint" ]]
  [ ! -e none ]
  mkdir full && echo mine >full/config.json
  refuses_with "zs-runs: full: is not empty: name a new folder" zs-runs export first full
  [ "$(cat full/config.json)" = mine ]
  run -2 zs-runs export first
  run -2 zs-runs export nothing there
  cp -r "$run/checkpoint_2" kept
  printf x | dd of="$run/checkpoint_2/pytorch_model.bin" bs=1 seek=3000 conv=notrunc status=none
  run -2 --separate-stderr zs-runs export first torn --checkpoint 2
  [[ $stderr == *"checkpoint_2/pytorch_model.bin: does not have the checksum that SHA256SUMS gives"* ]]
  [ ! -e torn ]
  rm -r "$run/checkpoint_2" && mv kept "$run/checkpoint_2"
}
