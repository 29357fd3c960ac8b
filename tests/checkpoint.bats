# SPDX-License-Identifier: Apache-2.0
# Checkpoints on real MPI ranks: a training resumes at any stage, on any number of ranks, with the same bits. Damage is an
# error.
setup_file() {
  load helper
  warm
  cd "$BATS_FILE_TMPDIR"
  export SMALL="--model_name tiny --num_layers 2 --seq_length 32 --batch_size 1 --log_interval 5 --set model.dropout=0.1"
  train 1 --gradient_accumulation_steps 4 --zero_stage 0 --max_steps 20 --output_dir plain >plain.log
  train 4 --zero_stage 3 --max_steps 20 --save_steps 8 --output_dir saved >saved.log
  basename saved/2* >id
}

setup() {
  load helper
  warm
  load digests
  cd "$BATS_FILE_TMPDIR"
  id=$(cat id)
}

# ranks N: makes `launch` the words that start N ranks; one rank starts without mpirun.
ranks() { launch=(timeout "$HANG") && (($1 == 1)) || launch+=(mpirun --oversubscribe --bind-to none -n "$1"); }
# train RANKS OPTION...: zs-train on so many ranks.
train() {
  local launch
  ranks "$1"
  # shellcheck disable=SC2086
  "${launch[@]}" zs-train $SMALL "${@:2}"
}
resume() {
  local launch
  ranks "$1"
  "${launch[@]}" zs-train --resume "${@:2}"
}
digest() { sed -n 's/^state_digest: //p' "$@"; }

# damaged WORDS COMMAND...: notes a training from a copy of checkpoint_8, which the command changes as `broken`; it must be refused
# with these words. Words about broken/ are of that copy.
damaged() {
  local copy=broken${#refusal_words[@]}
  rm -rf broken
  cp -r "saved/$id/checkpoint_8" broken
  "${@:2}"
  mv broken "$copy"
  refusal "${1/broken\//$copy/}" "$SMALL --gradient_accumulation_steps 4 --max_steps 20 --checkpoint $copy --output_dir out"
}
# as_noted: the first by zs-train itself, then each, in one program.
as_noted() {
  # shellcheck disable=SC2086
  run -2 zs-train ${refusal_options[0]}
  [[ $output == "zs-train: "*"${refusal_words[0]}"* ]] || complain "broken0: $output"
  refused_each
  rm -r broken[0-9]*
}

@test "checkpoint: saved on 4 ranks at stage 3, it goes on at 2 ranks stage 1 and at 1 rank stage 0, bit for bit" {
  [[ $(digest saved.log) == "$(digest plain.log)" ]]
  cp -r saved moved
  rm -r "moved/$id"/{checkpoint_16,final_checkpoint}
  resume 2 "$id" --output_dir moved --zero_stage 1 >resumed.log
  [[ $(digest resumed.log) == "$(digest plain.log)" ]]
  [[ $(grep -c '^Epoch' resumed.log) == 3 ]] # steps 10, 15, 20
  train 1 --checkpoint "saved/$id/checkpoint_8" --gradient_accumulation_steps 4 --zero_stage 0 --max_steps 20 --output_dir out >other.log
  [[ $(digest other.log) == "$(digest plain.log)" ]]
}

@test "checkpoint: LibTorch's own AdamW goes on bit for bit too" {
  train 1 --use_torch_adam --max_steps 8 --save_steps 4 --output_dir own >whole.log
  train 1 --use_torch_adam --max_steps 8 --checkpoint own/2*/checkpoint_4 --output_dir rest >rest.log
  [[ $(digest rest.log) == "$(digest whole.log)" ]]
}

@test "checkpoint: what was resumed is one series, without gap or duplicate" {
  rm -rf moved
  cp -r saved moved
  rm -r "moved/$id"/{checkpoint_16,final_checkpoint}
  resume 1 "$id" --output_dir moved --zero_stage 2 >resumed.log
  zs-aggregate --format tsv "moved/$id/metrics.h5" | awk 'NR == 2 { exit !($3 == 20 && $4 == "COMPLETE") }'
  run -0 zs-runs show "$id" --registry moved
  [[ $output == *resumed_after_step*8* && $output == *complete* ]]
}

# One rank gets a signal: all save at one step and end with 75, and the run goes on to the same bits. Sets `saved`, the
# folder of the checkpoint. Options go to the training.
signalled() {
  rm -rf stopped
  export ZS_MARK=stopped-$BATS_SUITE_TMPDIR
  # shellcheck disable=SC2086
  mpirun --oversubscribe --bind-to none -n 2 zs-train $SMALL --gradient_accumulation_steps 2 --zero_stage 2 --max_steps 100000 \
    --output_dir stopped "$@" >stopped.log 2>stopped.err &
  launcher=$!
  await grep -q 'Step 5,' stopped.log
  kill -USR1 "$(marked zs-train | tail -n 1)"
  status=0
  wait $launcher || status=$?
  ((status == 75)) || { cat stopped.err; echo "status $status"; false; }
  id=$(basename stopped/2*)
  run -0 zs-runs show "$id" --registry stopped
  [[ $output == *preempted* ]]
  step=$(basename stopped/"$id"/checkpoint_*)
  saved=stopped/$id/$step
  resume 1 "$id" --output_dir stopped --max_steps $((${step#checkpoint_} + 3)) >again.log
  train 1 --gradient_accumulation_steps 4 --max_steps $((${step#checkpoint_} + 3)) --output_dir out >whole.log
  [[ $(digest again.log) == "$(digest whole.log)" ]]
}

@test "checkpoint: a signal to one rank saves at one step on all, ends with 75, and the run goes on to the same bits" {
  signalled
  [ -s "$saved/gradients.pt" ] # a signal takes none of the evidence away
}

@test "checkpoint: the same without gradients, where the ranks tell each other at the end of a step" {
  signalled --save_gradients false
  [ ! -e "$saved/gradients.pt" ]
}

@test "checkpoint: a flipped bit, a truncated file, a missing file and another model are located errors" {
  flip() { printf '\x55' | dd of=broken/pytorch_model.bin bs=1 seek=200000 conv=notrunc status=none; }
  damaged "broken/pytorch_model.bin: does not have the checksum" flip
  damaged "broken/accelerator_states/optimizer_00001.pt: does not have the checksum" truncate -s -100 broken/accelerator_states/optimizer_00001.pt
  damaged "broken/accelerator_states/optimizer_00002.pt: is missing, and SHA256SUMS lists it: " rm broken/accelerator_states/optimizer_00002.pt
  # Not a training from its weights alone, with moments of 0.
  damaged "broken/accelerator_states/state.json: " rm -r broken/accelerator_states
  damaged "broken/SHA256SUMS: No such file" rm broken/SHA256SUMS
  damaged "broken/SHA256SUMS: does not list accelerator_states/optimizer_00000.pt, " sed -i '/pytorch_model.bin/!d' broken/SHA256SUMS
  damaged "broken/SHA256SUMS: does not list model.safetensors, " touch broken/model.safetensors
  damaged "broken/SHA256SUMS:3: lists " sed -i 2p broken/SHA256SUMS
  as_noted
  for layers in 1 3; do
    run -2 zs-train $SMALL --num_layers $layers --gradient_accumulation_steps 4 --max_steps 20 --checkpoint "saved/$id/checkpoint_8" --output_dir out
    [[ $output == "zs-train: saved/$id/checkpoint_8/config.json: n_layer is 2, of the model $layers: it is a checkpoint of another model" ]] || complain "$output"
  done
  run -2 zs-train $SMALL --gradient_accumulation_steps 2 --max_steps 20 --checkpoint "saved/$id/checkpoint_8" --output_dir out
  [[ $output == *"on 1 ranks use --gradient_accumulation_steps 4"* ]]
  run -2 zs-train $SMALL --checkpoint no-such-folder --output_dir out
  [[ $output == *"no-such-folder: there is no such checkpoint"* ]]
  verdict
}

# state KEY VALUE: sets a number of broken's state.json, and the checksums so that nothing else is wrong.
state() {
  jq "$1 = $2" broken/accelerator_states/state.json >changed && mv changed broken/accelerator_states/state.json
  (cd broken && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
}

@test "checkpoint: zs-train names the place of each number that no training writes" {
  where=broken/accelerator_states/state.json
  damaged "$where: step is -5, expected a whole number from 1 to " state .step -5
  damaged "$where: step is 0, expected" state .step 0
  damaged "$where: step is 8.5, expected" state .step 8.5
  damaged "$where: step is 1.8446744073709552e+19, expected" state .step 18446744073709551615
  damaged "$where: step is \"8\", expected" state .step '"8"'
  damaged "$where: sampler/position is 32, which 9 steps of 4 micro-batches of 1 sequences do not give" state .step 9
  damaged "$where: leaves is 0, expected" state .leaves 0
  damaged "$where: updates is 9, expected a whole number from 0 to 8" state .updates 9
  damaged "$where: updates is -1, expected" state .updates -1
  damaged "$where: batch_size is null, expected" state .batch_size null
  damaged "$where: has no sampler/position" state .sampler '{"seed": 42}'
  damaged "$where: learning_rate is null, expected" state .learning_rate null
  damaged "$where: arithmetic/dtype is 5, expected a text" state .arithmetic.dtype 5
  damaged "$where: arithmetic is [], expected names with a text each" state .arithmetic '[]'
  damaged "$where: loss_scaler/scale is -1, expected" state .loss_scaler.scale -1
  damaged "$where: is of another format" state .format '"zs-checkpoint 2"'
  damaged "broken/config.json: n_embd is \"wide\", of the model 128" config '.n_embd = "wide"'
  as_noted
  verdict
}

config() {
  jq "$1" broken/config.json >changed && mv changed broken/config.json
  state .step 8
}

@test "checkpoint: optimizer states that overlap, are missing or do not fit are errors" {
  copied() {
    cp broken/accelerator_states/optimizer_0000{"$1","$2"}.pt
    state .step 8
  }
  damaged "have the optimizer state of the same elements of transformer." copied 0 7
  damaged "have the optimizer state of the same elements of transformer." copied 0 1
  gone() {
    rm broken/accelerator_states/optimizer_00003.pt
    state .step 8
  }
  damaged "broken/accelerator_states: the optimizer state of transformer." gone
  as_noted
  verdict
}

@test "checkpoint: more ranks than a step has micro-batches share them, to the same bits" {
  zs-train $SMALL --max_steps 3 --save_steps 1 --run_name alone --output_dir one >one.log
  rm -r one/*/{checkpoint_2,final_checkpoint}
  resume 2 alone --output_dir one --zero_stage 2 >two.log
  [[ $(digest two.log) == "$(digest one.log)" ]]
  # What a person asks for must be the run's.
  run -2 train 2 --checkpoint one/*/checkpoint_1 --gradient_accumulation_steps 1 --output_dir out
  [[ $output == *"was made with micro-batches a step 1, not 2: use --train_batch_size 1"* ]]
}

@test "checkpoint: a training on 4 ranks is killed, goes on with 3 and then with 4, to the bits of the undisturbed one" {
  options=(--zero_stage 3 --save_steps 3 --output_dir lost --run_name lost --max_grad_norm 0.5)
  export ZS_MARK=lost-$BATS_SUITE_TMPDIR
  # shellcheck disable=SC2086
  mpirun --oversubscribe --bind-to none -n 4 zs-train $SMALL --max_steps 100000 "${options[@]}" >lost.log 2>/dev/null &
  await compgen -G 'lost/2*/checkpoint_*' >/dev/null
  # shellcheck disable=SC2046
  kill -KILL $(marked zs-train | tail -n 1)
  wait || true
  [ ! -e lost/2*/final_checkpoint ]
  # One rank is lost, and the others share its micro-batches; they are stopped too.
  mpirun --oversubscribe --bind-to none -n 3 zs-train --resume lost --output_dir lost >three.log 2>three.err &
  launcher=$!
  await grep -q 'Step ' three.log
  kill -USR1 "$(marked zs-train | tail -n 1)"
  status=0
  wait $launcher || status=$?
  ((status == 75)) || { cat three.err; echo "status $status"; false; }
  last=$(basename -a lost/2*/checkpoint_* | sed 's/checkpoint_//' | sort -n | tail -n 1)
  resume 4 lost --output_dir lost --zero_stage 1 --max_steps $((last + 3)) >four.log
  train 1 --gradient_accumulation_steps 4 --max_steps $((last + 3)) --max_grad_norm 0.5 --output_dir out >undisturbed.log
  [[ $(digest four.log) == "$(digest undisturbed.log)" ]]
  # One series: each step once.
  zs-aggregate --format tsv lost/2*/metrics.h5 | awk -v steps=$((last + 3)) 'NR == 2 { exit !($3 == steps && $4 == "COMPLETE") }'
}

@test "checkpoint: another arithmetic than the run's is refused, from a run and from a checkpoint" {
  zs-train $SMALL --scheduler constant --max_steps 2 --save_steps 1 --run_name amp --amp --output_dir amp >amp.log
  for asked in "--autocast none:autocast bfloat16, not none: use --autocast bfloat16" "--autocast float16:autocast bfloat16, not float16" \
    "--autocast none --bf16:dtype float32, not bfloat16: use --dtype float32"; do
    # shellcheck disable=SC2086
    run -2 resume 1 amp --output_dir amp --max_steps 4 ${asked%%:*}
    [[ $output == *"was made with ${asked#*:}"* ]] || complain "$asked: $output"
  done
  run -2 train 1 --checkpoint amp/*/checkpoint_1 --output_dir out
  [[ $output == *"/checkpoint_1: was made with autocast bfloat16, not none"* ]] || complain "$output"
  run -2 resume 1 "$id" --output_dir saved --max_steps 30 --compile
  [[ $output == *"/final_checkpoint: was made with compile false, not true: use --set zero.compile=false, or begin another run from its weights"* ]] || complain "$output"
  # Its weights alone are evaluated at any batch, and begin another run on other data.
  checkpoint=$(echo amp/*/checkpoint_1)
  run -2 train 1 --checkpoint "$checkpoint" --batch_size 3 --output_dir out
  [[ $output == *"use --batch_size "*", or begin another run from its weights, --model_name $checkpoint"* ]] || complain "$output"
  evaluated() { train 1 --checkpoint "$checkpoint" --amp --eval_only --output_dir none "$@" | grep '^validation: loss:' | cut -c1-24; }
  usual=$(evaluated)
  [[ -n $usual && $(evaluated --batch_size 3) == "$usual" ]]
  rm -rf broken
  cp -r amp/*/checkpoint_1 broken
  state .arithmetic 'null | del(.arithmetic)'
  run -2 train 1 --checkpoint broken --output_dir out
  [[ $output == *"broken/accelerator_states/state.json: has no arithmetic"* ]] || complain "no arithmetic: $output"
  resume 1 amp --output_dir amp --max_steps 4 >on.log
  zs-train $SMALL --scheduler constant --max_steps 4 --run_name whole --amp --output_dir whole >whole.log
  [[ $(digest on.log) == "$(digest whole.log)" ]]
  verdict
}

@test "checkpoint: what a killed writer left is cleared away when the run goes on; a checkpoint that it was replacing comes back" {
  rm -rf left
  zs-train $SMALL --max_steps 4 --save_steps 2 --run_name left --output_dir left >left.log
  run=$(echo left/2*)
  mkdir -p "$run/.checkpoint_4.tmp.host-1/accelerator_states" "$run/.removed_1" "$run/.checkpoint_2.old"
  echo torn | tee "$run/.checkpoint_4.tmp.host-1/gradients.pt" "$run/.metrics.h5.tmp.77" >/dev/null
  mv "$run/final_checkpoint" "$run/.final_checkpoint.old"
  zs-train --resume left --registry left --max_steps 6 >again.log
  [[ $(find "$run" -maxdepth 1 -name '.*' ! -name .owner) == "" ]] || complain "left: $(ls -A "$run")"
  [ -s "$run/checkpoint_2/SHA256SUMS" ] || complain "checkpoint_2 is gone"
  zs-train $SMALL --max_steps 6 --output_dir out >whole.log
  [[ $(digest again.log) == "$(digest whole.log)" ]] || complain "other bits"
  verdict
}

# Weights as Hugging Face has them, made in Python from a checkpoint of ours: with and without the first part of the
# names, with masks and the tied head, with another head, and with a layer more.
@test "checkpoint: torch.load reads both files; weights from Python load in any of their usual forms; those of another model are refused" {
  /usr/bin/python3 -c 'import torch' 2>/dev/null || no_package python3-torch
  /usr/bin/python3 - "saved/$id/final_checkpoint" <<'END'
import os, shutil, sys, torch
folder = sys.argv[1]
weights = {k: v.clone() for k, v in torch.load(folder + "/pytorch_model.bin", weights_only=True).items()}
gradients = torch.load(folder + "/gradients.pt", weights_only=True)
assert set(weights) == set(gradients) and "transformer.wte.weight" in weights, sorted(weights)
assert all(torch.isfinite(t).all() for t in weights.values())
assert any((t != 0).any() for t in gradients.values())
def save(name, tensors, change=None):
    os.makedirs(name, exist_ok=True)
    torch.save(tensors, name + "/pytorch_model.bin")
    config = open(folder + "/config.json").read()
    open(name + "/config.json", "w").write(config.replace(*change) if change else config)
head = dict(weights, **{"lm_head.weight": weights["transformer.wte.weight"]})
masks = dict(head, **{"transformer.h.0.attn.bias": torch.ones(1, 1, 8, 8), "transformer.h.0.attn.masked_bias": torch.tensor(-1e4)})
save("py_same", weights)
os.remove("py_same/config.json")
save("py_masks", masks)
save("py_hub", {k.replace("transformer.", ""): v for k, v in weights.items()})
save("py_untied", dict(head, **{"lm_head.weight": head["lm_head.weight"] + 1}))
save("py_more", dict(weights, **{"transformer.h.2.ln_1.weight": torch.ones(128)}))
save("py_less", {k: v for k, v in weights.items() if "h.1.mlp.c_fc.bias" not in k})
save("py_heads", weights, ('"n_head": 4', '"n_head": 8'))
save("py_layers", dict(weights), ('"n_layer": 2', '"n_layer": 3'))
save("py_torn", weights, ("}", ""))
END
  for folder in py_same py_masks py_hub; do
    training python 1 "$SMALL --checkpoint $folder --max_steps 1 --learning_rate 0 --set training.weight_decay=0 --save_final false --output_dir out"
  done
  run -0 one_digest_each
  [[ $output == "python $(digest saved.log)" ]] || complain "other bits: $output"
  refused() { refusal "$1/$2" "$SMALL --checkpoint $1 --max_steps 1 --output_dir out"; }
  refused py_untied "pytorch_model.bin: lm_head.weight is not transformer.wte.weight, to which this model ties it"
  refused py_more "pytorch_model.bin: has transformer.h.2.ln_1.weight, which the model has not: it is a checkpoint of another model"
  refused py_less "pytorch_model.bin: no tensor 'transformer.h.1.mlp.c_fc.bias'"
  refused py_heads "config.json: n_head is 8, of the model 4: it is a checkpoint of another model"
  refused py_layers "config.json: n_layer is 3, of the model 2: it is a checkpoint of another model"
  refused py_torn "config.json: "
  mv py_hub py_flipped
  printf '\x55' | dd of=py_flipped/pytorch_model.bin bs=1 seek=200000 conv=notrunc status=none
  refused py_flipped "pytorch_model.bin: pytorch_model/data/1: checksum mismatch, the file is damaged"
  # The first by zs-train itself.
  # shellcheck disable=SC2086
  run -2 zs-train ${refusal_options[0]}
  [[ $output == "zs-train: ${refusal_words[0]}"* ]] || complain "$output"
  refused_each
  verdict
}

@test "checkpoint: a run with a final checkpoint alone goes on too, and records what changed" {
  zs-train $SMALL --max_steps 3 --save_steps 100 --run_name only --output_dir last >first.log
  zs-train --resume only --output_dir last --max_steps 6 >second.log
  zs-train $SMALL --max_steps 6 --output_dir out >whole.log
  [[ $(digest second.log) == "$(digest whole.log)" ]]
  run -0 zs-runs --registry last --filter max_steps=6 resumed_after_step=3 --show run_name command resume_command
  [[ ${lines[1]} == $'only\tzs-train '*'--run_name only'*$'\tzs-train --resume only'* ]]
}

@test "checkpoint: a full disk while saving is an error with status 2, and the checkpoint before it stays" {
  mkdir -p small
  mount -t tmpfs -o size=14m tmpfs small 2>/dev/null || skip "cannot mount a small disk"
  train 2 --gradient_accumulation_steps 2 --max_steps 40 --save_steps 4 --output_dir small >full.log 2>full.err && status=0 || status=$?
  id=$(cd small && basename 2*)
  newest=$(ls -d small/"$id"/checkpoint_* | sort -V | tail -n 1)
  ok=0
  (cd "$newest" && sha256sum --quiet -c SHA256SUMS) && ok=1
  umount small
  ((status != 0 && ok)) || { cat full.err; false; }
  grep -q 'No space left on device' full.err
}

@test "checkpoint: killed with -9 at random moments, a run always goes on to the same bits" {
  rm -rf killed
  export ZS_MARK=killed-$BATS_SUITE_TMPDIR
  # shellcheck disable=SC2086
  mpirun --oversubscribe --bind-to none -n 2 zs-train $SMALL --gradient_accumulation_steps 2 --zero_stage 3 --max_steps 200 --save_steps 10 \
    --keep_last 2 --output_dir killed >killed.log 2>/dev/null &
  await compgen -G 'killed/2*/checkpoint_*' >/dev/null
  id=$(cd killed && basename 2*)
  for round in 1 2 3 4; do
    sleep "0.$((RANDOM % 9 + 1))"
    # shellcheck disable=SC2046
    kill -KILL $(marked zs-train) 2>/dev/null || true
    wait || true
    # Whatever was killed when: the metrics are a whole file, which has each step from the first on.
    zs-parse "killed/$id" | awk -F'\t' -v id="$id" '$1 == id && $2 != ++rows { exit 1 } END { exit !rows }'
    ((round == 4)) && break
    resume 2 "$id" --output_dir killed >>killed.log 2>/dev/null &
    sleep 1.5
  done
  resume 1 "$id" --output_dir killed >final.log 2>final.err || grep -q "has 200 steps done, and they count: of 200 none is left" final.err || { cat final.err; false; }
  train 1 --gradient_accumulation_steps 4 --max_steps 200 --output_dir out >whole.log
  [[ $(digest final.log killed.log | tail -n 1) == "$(digest whole.log)" ]]
  zs-aggregate --format tsv "killed/$id/metrics.h5" | awk 'NR == 2 { exit !($3 == 200) }'
}
