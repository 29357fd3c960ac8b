# SPDX-License-Identifier: Apache-2.0
# No option that names a file or folder lets a tool overwrite one of its inputs.
setup() {
  load helper
  warm
  mkdir "$BATS_TEST_TMPDIR/w" && cd "$BATS_TEST_TMPDIR/w"
}

# What an option with a file or folder is for. A new one belongs into one of these lists; a written one gets a case below.
written="zs-aggregate:output zs-parse:output zs-plan:output zs-plot:output zs-report:output zs-report:figures zs-sweep:output
  zs-runs:output zs-tokenize:output zs-trace:output zs-checkpoint:output zs-verify:output zs-train:dump_logits zs-train:save_pretrained zs-train:probe
  zs-train:profile_dir zs-train:tensorboard_dir zs-train:wandb_dir zs-train:results zs-train:save_initial zs-train:dump_batches"
# Folders in which zs makes folders of its own, and never replaces a file.
kept="registry output_dir nvme_path keep"
read="theme profile conditions tokenizer dataset dataset_name deepspeed_config plan_profile checkpoint resume_from train_file valid_file
  test_file gradients trace patterns pattern_file names flight lora_adapter"

@test "outputs: every option that names a file or a folder is known to be read or written" {
  for tool in "$BUILD"/zs-*; do
    name=${tool##*/}
    while read -r option; do
      [[ " ${written//$'\n'/ } " == *" $name:$option "* || " $kept ${read//$'\n'/ } " == *" $option "* ]] ||
        complain "$name --$option: is it read or written? Say so in tests/outputs.bats"
        seen=$((${seen:-0} + 1))
    done < <("$tool" --help all | sed -nE 's/^ *(-[a-z], )?--([a-z_]+) (FILE|DIR|PATH|FILE\|DIR)( .*)?$/\2/p')
  done
  ((seen > 30)) || complain "only $seen options were seen"
  verdict
}

# refused PATH COMMAND...: it ends with 2, names the file and says why, and every file is as it was.
refused() {
  local before after
  before=$(find . -type f ! -path './saved_models/*' -exec sha256sum {} + | sort)
  run -2 --separate-stderr "${@:2}"
  [[ $stderr == *"$1: is an input, and --"*" would write over it: name another file"* ]] || complain "${*:2}: $stderr"
  after=$(find . -type f ! -path './saved_models/*' -exec sha256sum {} + | sort)
  [ "$before" = "$after" ] || complain "${*:2}: $(diff <(echo "$before") <(echo "$after"))"
}

a_log() {
  for step in 1 2 3; do
    echo "Epoch 1, Step $step, Loss: 2.$step sync: True time: 0.1 alloc_mem: 1 peak_mem: 2"
  done >x.log
  zs-parse x.log --format h5 -o x.h5
  zs-parse x.log -o x.tsv
  gzip -k x.log
  ln -s x.log soft
  ln x.log hard
  mkdir sub && ln -s ../x.log sub/far
}

@test "outputs: light tools never write over what they read: itself, a link, standard input, compressed" {
  a_log
  refused x.log zs-parse x.log --format tsv -o x.log
  refused x.log zs-parse x.log --format tsv -o ./sub/../x.log
  refused x.log zs-parse x.log -o soft
  refused soft zs-parse soft --format tsv -o x.log
  refused x.log zs-parse x.log -o hard
  refused x.log zs-parse x.log -o sub/far
  refused x.log zs-parse x.h5 x.log --format tsv -o x.log
  refused x.log.gz zs-parse x.log.gz --format tsv -o x.log.gz
  refused stdin bash -c 'zs-parse --format tsv -o x.log <x.log'
  refused x.log bash -c 'zs-parse x.log >>x.log'
  refused x.h5 zs-aggregate x.h5 -o x.h5
  refused x.tsv zs-aggregate --format tsv x.tsv -o x.tsv
  refused x.log zs-report x.log -o x.log -f html
  refused x.log zs-plot loss x.log -o x.log -f svg
  cp "$ROOT/share/plot/theme" theme.svg
  refused theme.svg zs-plot loss x.log --theme theme.svg -o theme.svg
  echo "some text" >t.txt
  refused t.txt zs-tokenize --tokenizer "$ROOT/tests/token/gpt2.json" t.txt -o t.txt
  printf 'parameters: {learning_rate: [0.1, 0.2]}\n' >sweep.yaml
  printf 'model: {name: tiny}\n' >sweep_001.yaml
  refused ./sweep_001.yaml zs-sweep sweep_001.yaml sweep.yaml -o .
  verdict
}

@test "outputs: traces, plans and pictures of a report" {
  a_log
  trace=$(find "$ROOT/tests/data/traces" -name '*.json*' | head -n 1)
  cp "$trace" "t.${trace##*.}"
  refused "t.${trace##*.}" zs-trace --format json "t.${trace##*.}" -o "t.${trace##*.}"
  tar -xzf "$ROOT/tests/data/checkpoints/plain.tar.gz"
  refused checkpoint/ckpt.pt zs-checkpoint show checkpoint --format table -o checkpoint/ckpt.pt
  echo 'a b' >names
  refused names zs-checkpoint diff checkpoint checkpoint/ckpt.pt --names names -o names
  echo '{}' >profile.json
  refused profile.json zs-plan profile.json -o profile.json
  mkdir pictures
  zs-report x.log -o r.md --figures pictures
  picture=$(find pictures -type f | head -n 1)
  cp "$ROOT/share/plot/theme" "$picture"
  refused "$picture" zs-report x.log -o r.md --figures pictures --theme "$picture"
  verdict
}

@test "outputs: a good output beside its input, and one that was there, are written" {
  a_log
  zs-parse x.log -o y.tsv
  zs-parse x.log -o y.tsv
  zs-parse x.log >z.tsv
  cmp y.tsv z.tsv
  zs-aggregate x.h5 -o s.h5 2>/dev/null || true
  zs-report x.log -o r.html || [ "$?" = 1 ]
  zs-report x.log -o r.html || [ "$?" = 1 ]
  printf 'parameters: {learning_rate: [0.1, 0.2]}\n' >sweep.yaml
  printf 'model: {name: tiny}\n' >base.yaml
  zs-sweep base.yaml sweep.yaml -o .
  zs-sweep base.yaml sweep.yaml -o .
  [ -s sweep_002.yaml ]
  echo "some text to be divided, and some more of it" >text.txt
  zs-tokenize text.txt -o tokens.bin --tokenizer "$ROOT/tests/token/gpt2.json"
}

@test "outputs: zs-train never writes over its data set, configuration, model or weights" {
  [ -x "$BUILD/zs-train" ] || skip "zs-train is not built: make build/zs-train"
  for _ in {1..200}; do echo "the data set of this training"; done >d.txt
  small=(--model_name tiny --num_layers 1 --seq_length 16 --max_steps 1 --save_final false)
  train=(zs-train "${small[@]}" --dataset d.txt)
  refused d.txt "${train[@]}" --dump_batches d.txt
  refused d.txt "${train[@]}" --eval --dump_logits d.txt
  ln -s d.txt link.txt
  refused d.txt "${train[@]}" --dump_batches link.txt
  echo '{"train_batch_size": 4}' >ds.json
  refused ds.json "${train[@]}" --deepspeed_config ds.json --results ds.json
  printf 'model: {name: tiny, num_layers: 1}\ntraining: {dump_logits: c.yaml, max_steps: 1}\n' >c.yaml
  refused c.yaml zs-train c.yaml
  "${train[@]}" --save_pretrained hf >/dev/null
  refused hf/config.json zs-train --model_name hf --seq_length 16 --max_steps 1 --dataset d.txt --save_pretrained hf --save_final false
  refused hf/config.json zs-train --model_name hf --seq_length 16 --max_steps 1 --dataset d.txt --save_pretrained ./hf/ --save_final false
  mkdir init && cp hf/config.json init/
  zs-train "${small[@]}" --save_initial init >/dev/null
  refused init/pytorch_model.bin zs-train --model_name init --seq_length 16 --max_steps 1 --dataset d.txt --save_initial init --save_final false
  mkdir p && cp d.txt p/rank-0.jsonl
  # What it does write: results of two methods in one file, and the same outputs twice.
  "${train[@]}" --results r.json >/dev/null
  "${train[@]}" --results r.json --method single >/dev/null
  [ "$(jq 'length' r.json)" = 2 ]
  "${train[@]}" --dump_batches b.h5 >/dev/null
  "${train[@]}" --dump_batches b.h5 >/dev/null
  verdict
}
