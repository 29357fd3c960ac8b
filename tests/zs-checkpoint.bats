# SPDX-License-Identifier: Apache-2.0
# zs-checkpoint on small checkpoints of other packages (written by tests/checkpoints/write.py, packed by check.py --record).
setup() {
  bats_load_library bats-support
  bats_load_library bats-assert
  load helper
  cd "$BATS_TEST_TMPDIR"
}

# unpack NAME [FOLDER]: the checkpoint of that name as FOLDER, or as NAME.
unpack() {
  mkdir -p "unpacked-$1"
  tar -xzf "$ROOT/tests/data/checkpoints/$1.tar.gz" -C "unpacked-$1"
  rm -rf "${2:-$1}"
  mv "unpacked-$1/checkpoint" "${2:-$1}"
}

z2=0.19.8-deepspeed-stage2-ranks2-dtypebf16
z3=0.19.8-deepspeed-stage3-ranks2-dtypebf16
one=0.19.8-deepspeed-stage1-ranks2-dtypefp32-universal1
three=0.19.8-deepspeed-stage3-ranks2-dtypefp32-universal1

# shards RANK: the optimizer's file of the rank of z2.
shards() { echo "z2/global_step3/bf16_zero_pp_rank_$1_mp_rank_00_optim_states.pt"; }

# faulty TEXT COMMAND...: whether zs-checkpoint verify of z2 says so, with status 1, after the command.
faulty() {
  local text=$1
  shift
  unpack $z2 z2
  "$@"
  run --separate-stderr -1 zs-checkpoint verify z2
  [[ $stderr == *"$text"* ]] || complain "$*: expected '$text', got: $stderr"
}

@test "what is read is what the training held, bit by bit, in every layout" {
  local count=0 path
  for truth in "$ROOT"/tests/data/checkpoints/*.tsv; do
    name=$(basename "$truth" .tsv)
    unpack "$name" folder
    path=folder
    [[ $name != trainer ]] || path=folder/checkpoint-3
    zs-checkpoint show --tensors --digests --format tsv $path >table || complain "$name: status $?"
    # A weight that the format does not have (16 bits at ZeRO-3, one of two tied names) is not looked for.
    while IFS=$'\t' read -r tensor kind digest; do
      if awk -F '\t' -v n="$tensor" -v k="$kind" -v d="$digest" \
        '($1 == n || $1 ~ /^#/) && ($2 == k || k == "weight" && $2 == "buffer") { found = 1; same = same || $NF == d } END { exit !(found && same) }' table; then
        count=$((count + 1))
      elif [[ $kind != weight ]] || awk -F '\t' -v n="$tensor" '$1 == n && $2 == "weight" { found = 1 } END { exit !found }' table; then
        complain "$name: $kind of $tensor"
      fi
    done <"$truth"
    rm -r folder
  done
  ((count > 400)) || complain "only $count tensors were compared"
  verdict
}

@test "Accelerate's states in a folder beside the weights, adapters, and an index without its files" {
  unpack accelerate-ranks2 flat
  mkdir -p checkpoint_3/accelerator_states
  cp flat/* checkpoint_3/accelerator_states/
  cp flat/model.safetensors checkpoint_3/
  run -0 zs-checkpoint show checkpoint_3
  assert_line --regexp '^framework +Accelerate$'
  assert_line --regexp '^ranks +2$'
  diff <(zs-checkpoint show --tensors --digests -f tsv flat | cut -f 1-6,9) <(zs-checkpoint show --tensors --digests -f tsv checkpoint_3 | cut -f 1-6,9)
  run -0 zs-checkpoint diff flat checkpoint_3
  rm checkpoint_3/accelerator_states/random_states_0.pkl
  run --separate-stderr -1 zs-checkpoint verify checkpoint_3
  [[ $stderr == *"the random states of rank 0 are missing"* ]]
  mkdir adapter
  cp flat/model.safetensors adapter/adapter_model.safetensors
  echo '{"global_step": 7}' >adapter/trainer_state.json
  run -0 zs-checkpoint show adapter
  assert_line --regexp '^layout +adapter$'
  assert_line --regexp '^step +7$'
  mkdir index
  echo '{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}' >index/model.safetensors.index.json
  run --separate-stderr -1 zs-checkpoint show index
  [[ $stderr == *"names 2 files of weights, and 2 of them are not beside it, the first model-1.safetensors"* ]]
}

@test "show says framework, version, step, ranks, layout, ties and what is frozen" {
  unpack $z2 z2
  run -0 zs-checkpoint show z2
  assert_line --regexp '^framework +DeepSpeed 0.19.8$'
  assert_line --regexp '^layout +ZeRO-2$'
  assert_line --regexp '^step +3$'
  assert_line --regexp '^ranks +2$'
  assert_line --regexp '^parameters +7, 1 frozen, 1 tied, 1 buffers$'
  assert_line --regexp '^weight_decay +0.1, in another group 0$'
  assert_line --regexp '^master +f32 +7 +305 +1220$'
  zs-checkpoint show --format json z2 >show.json
  [ "$(jq -r '.step, (.kinds[] | select(.kind == "exp_avg") | .elements)' show.json | paste -sd' ')" = "3 305" ]
  run -0 zs-checkpoint show z2// # as a shell completes it
  refute_line --partial //
  run -0 zs-checkpoint show --values z2
  assert_line --regexp 'schedule.last_batch_iteration +2'
}

@test "ZeRO-1 and ZeRO-3, a folder and its universal form: exact" {
  unpack $one one
  unpack $three three
  run -0 zs-checkpoint diff one/global_step3 three/global_step3
  assert_line --regexp '^verdict +exact$'
  run -0 zs-checkpoint diff one/global_step3 one/global_step3_universal
  assert_line --regexp '^verdict +exact$'
  assert_line --regexp '^exp_avg +7 +305 +0 '
  assert_line --regexp '^weight_decay +7 +7 +0 '
}

@test "other bits, other steps and shapes are found, and where they begin" {
  unpack $z2 z2
  unpack dcp-ranks2 dcp
  unpack titan-ranks2 titan
  run -1 zs-checkpoint diff dcp z2
  assert_line --regexp '^verdict +DIFFERENT$'
  assert_line --regexp '^what +[a-z0-9_]+ of [a-z0-9.]+'
  # ZeRO-1 of 2024 and ZeRO-2 of 2026 hold the same numbers; the one says a value of its loss scaler that the other lacks.
  unpack 0.15.4-deepspeed-stage1-ranks2-dtypebf16 old
  run zs-checkpoint diff z2 old
  assert_line --regexp '^float32 +8 +382 +0 '
  assert_line --regexp '^exp_avg +7 +305 +0 '
  # The same training, saved in two ways: nothing differs, the one has a schedule that the other lacks.
  run -3 zs-checkpoint diff dcp titan
  assert_line --regexp '^exp_avg_sq +7 +305 +0 '
  assert_line --regexp '^only in dcp +schedule: '
}

# verified STATUS VERDICT A B [ARGUMENT...]: what zs-verify says of two checkpoints.
verified() {
  status=0
  zs-verify "${@:3}" >said 2>&1 || status=$?
  [[ $status == "$1" && $(sed -n 's/^verdict: //p' said) == "$2" ]] || complain "zs-verify ${*:3}: expected $1 $2, got $status: $(cat said)"
}

@test "zs-verify: any two formats, stages and numbers of ranks, with one ledger" {
  unpack $one one
  unpack $three three
  unpack $z2 z2
  unpack dcp-ranks2 dcp
  unpack titan-ranks2 titan
  unpack trainer trainer
  unpack plain plain
  unpack accelerate-ranks2 accelerate
  verified 0 exact one three
  [[ $(cat said) == *'exp_avg: equal: 305 elements, in 7 tensors'*'layout_a: DeepSpeed 0.19.8, ZeRO-1, step 3, 2 ranks'* || \
    $(cat said) == *'layout_a: DeepSpeed 0.19.8, ZeRO-1, step 3, 2 ranks'*'exp_avg: equal: 305 elements, in 7 tensors'* ]] || complain "$(cat said)"
  verified 0 exact one/global_step3 one/global_step3_universal
  verified 1 DIFFERENT dcp z2
  grep -q '^what: float32 of emb.weight, element 0$' said || complain "$(cat said)"
  verified 3 inconclusive dcp titan
  verified 1 DIFFERENT trainer z2 # another model
  grep -q "^what: float32 of norm.weight$" said || complain "$(cat said)"
  printf '#0 emb.weight\n#1 fc1.weight\n#2 fc2.weight\n#3 fc1.bias\n#4 norm.weight\n#5 norm.bias\n#6 fc2.bias\n' >names
  verified 1 DIFFERENT accelerate plain/ckpt.pt --names names
  grep -q '^exp_avg: different: [0-9]* of 305 elements, in 7 tensors$' said || complain "$(cat said)"
  # What zs itself writes, in two forms; several at once.
  zs-checkpoint convert --to safetensors z2 converted >/dev/null
  verified 0 exact z2 converted
  verified 1 DIFFERENT three one z2
  grep -q '^compared: three with z2$' said || complain "$(cat said)"
  verified 2 '' z2 z2/
  verified 2 '' z2 missing
  # A thing of each kind that one side alone has, or has otherwise, is never exact.
  rm "$(shards 1)"
  verified 1 FAILED z2 converted
  verdict
}

@test "Megatron-core: the optimizer's step and settings are those of common.pt; what a form has to assume is said" {
  unpack megatron-ranks4-ep2-experts4-optimfully_reshardable moe
  run -0 zs-checkpoint show moe
  assert_line --regexp '^framework +Megatron-core'
  assert_line --regexp '^step +3$'
  assert_line --regexp '^optimizer steps +3$'
  assert_line --regexp '^betas +\(0\.9, 0\.999\)$'
  refute_line --regexp '^ranks ' # not said: the ranks that have the same write no file
  run -0 zs-checkpoint verify moe
  assert_line --regexp '^verdict +whole$'
  run -0 zs-checkpoint convert --to universal moe universal
  assert_line --regexp "^assumed +weight_decay of the optimizer, which the checkpoint does not say: torch.optim.AdamW's\$"
  # Masters, moments and steps are equal; the other form has no place for what is left out.
  run -3 zs-verify moe universal
  assert_line --regexp '^float32: equal: [0-9]+ elements, in 14 tensors$'
  assert_line --regexp '^exp_avg_sq: equal: [0-9]+ elements, in 14 tensors$'
  assert_line 'step: equal: 14 values'
  # Layers and experts are stacked: a line of names takes them from checkpoints that have them apart.
  run -0 zs-checkpoint convert --to hf moe joined
  python3 - <<'END'
import json, struct
data = open("joined/model.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
head, body, into, parts = json.loads(data[8:8 + size]), data[8 + size:], {}, b""
for name, row in head.items():
    if name == "__metadata__":
        continue
    begin, end = row["data_offsets"]
    shape, pieces = row["shape"], [(name, row["shape"], body[begin:end])]
    if name.endswith("experts.linear_fc1.weight"):
        part = (end - begin) // (shape[0] * shape[1])
        pieces = [(f"layers.{i}.experts.{j}.up.weight", shape[2:], body[begin + (i * shape[1] + j) * part:][:part])
                  for i in range(shape[0]) for j in range(shape[1])]
    for key, sizes, piece in pieces:
        into[key] = {"dtype": row["dtype"], "shape": sizes, "data_offsets": [len(parts), len(parts) + len(piece)]}
        parts += piece
text = json.dumps(into).encode()
open("apart.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + parts)
END
  echo 'decoder.layers.mlp.experts.experts.linear_fc1.weight = stack(stack(layers.0.experts.{0-3}.up.weight), stack(layers.1.experts.{0-3}.up.weight))' >names
  run -0 zs-checkpoint diff --names names joined apart.safetensors
  assert_line --regexp '^verdict +exact$'
  # What is damaged, or of another step, is told by file.
  cp -r moe torn
  head -c 900 moe/common.pt >torn/common.pt
  run -1 --separate-stderr zs-checkpoint verify torn
  [[ $stderr == *"torn/common.pt: "* ]] || complain "$stderr"
  verdict
}

@test "names of wrappers and first words are joined; --names does the rest" {
  unpack lightning lightning
  unpack plain plain
  run zs-checkpoint diff lightning plain
  assert_line --regexp '^float32 +10 '
  unpack accelerate-ranks2 accelerate
  zs-checkpoint show accelerate >shown
  grep -q 'named #0, #1' shown
  printf '#0 emb.weight\n#1 fc1.weight\n#2 fc2.weight\n#3 fc1.bias\n#4 norm.weight\n#5 norm.bias\n#6 fc2.bias\n' >names
  run zs-checkpoint diff --names names accelerate plain
  assert_line --regexp '^exp_avg +7 +305 '
  echo 'one two three' >names
  run -2 zs-checkpoint diff --names names accelerate plain
  assert_output --partial 'names:1: expected two names'
}

@test "zs-checkpoint names a rank's file that is missing, torn, empty, swapped, or of another step or world size" {
  faulty 'the file of rank 1 is missing' eval 'rm "$(shards 1)"'
  faulty 'zero_pp_rank_1_mp_rank_00_optim_states.pt: damaged zip archive' eval 'truncate -s 3000 "$(shards 1)"'
  faulty 'zero_pp_rank_1_mp_rank_00_optim_states.pt: is empty' eval ': >"$(shards 1)"'
  faulty 'fc1.bias: 13 of 13 weights of bf16 are not their masters rounded' eval 'mv "$(shards 0)" x; mv "$(shards 1)" "$(shards 0)"; mv x "$(shards 1)"'
  faulty 'zero_pp_rank_1_mp_rank_00_optim_states.pt: holds no optimizer_state_dict' eval 'cp z2/global_step3/mp_rank_00_model_states.pt "$(shards 1)"'
  faulty 'is a second file of rank 0' cp "$(shards 0)" z2/global_step3/zero_pp_rank_0_mp_rank_00_optim_states.pt
  faulty 'is of rank 2, but the checkpoint has 2 ranks' eval 'cp "$(shards 1)" "$(shards 2)"'
  unpack 0.19.8-deepspeed-stage3-ranks4-dtypefp32-sub_group60 four
  unpack $three three
  cp three/global_step3/zero_pp_rank_1_mp_rank_00_optim_states.pt four/global_step3/
  run --separate-stderr -1 zs-checkpoint verify four
  [[ $stderr == *'zero_pp_rank_1_mp_rank_00_optim_states.pt: is one of 2 ranks, the model file of 4'* ]] || complain "$stderr"
  unpack $z2 z2
  : >z2/global_step3/mp_rank_00_model_states.pt
  run --separate-stderr -2 zs-checkpoint verify z2
  [[ $stderr == *'mp_rank_00_model_states.pt: is empty'* ]] || complain "$stderr"
  verdict
}

# pickled FILE CODE: a file of torch.save with that pickle, a text in Python.
pickled() {
  /usr/bin/python3 -c '
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("archive/data.pkl", eval(sys.argv[2]))
    z.writestr("archive/version", "3\n")' "$@"
}

@test "pickles: nothing of them runs; names that only a hostile one has are refused with their byte" {
  for name in posix:system os:system subprocess:Popen builtins:eval builtins:getattr importlib:import_module torch.serialization:os.system; do
    pickled h.pt "b'\\x80\\x02c${name%:*}\\n${name#*:}\\nX\\x08\\x00\\x00\\x00touch no\\x85R.'"
    run --separate-stderr -2 zs-checkpoint show h.pt
    [[ $stderr == "zs-checkpoint: h.pt: archive/data.pkl: byte 2: the pickle names ${name%:*}.${name#*:}, "*"nothing was run here" ]] || complain "$name: $stderr"
    [ ! -e no ] || complain "$name ran"
  done
  # A class of anyone's is kept by its name: {"model": {"w": tensor}, "args": argparse.Namespace(...)}.
  unpack $three three
  run -0 zs-checkpoint show three
  assert_line --regexp '^objects .*argparse.Namespace'
  verdict
}

@test "the JSON is as its schema says" {
  unpack $z2 z2
  unpack $z3 z3
  for words in "show z2" "verify z2" "diff z2 z3" "show --tensors z2" "show --values z2"; do
    # shellcheck disable=SC2086
    zs-checkpoint --format json $words >made.json || true
    /usr/bin/python3 "$ROOT/tests/schema.py" "$ROOT/share/schemas/zs-checkpoint.json" made.json || complain "$words"
  done
  verdict
}

@test "convert: it writes weights for from_pretrained, says what it left out, and leaves nothing after a refusal" {
  for name in $z2 $z3 titan-ranks2 lightning plain 0.19.8-deepspeed-stage3-ranks4-dtypefp32-sub_group60; do
    unpack "$name" from
    run -0 zs-checkpoint convert --to safetensors from all
    assert_line --regexp '^read back +equal, every bit$'
    # Names of tied parameters, which safetensors have not twice, are known to be such.
    run -0 zs-checkpoint diff from all
    assert_line --regexp '^verdict +exact$'
    run -0 zs-checkpoint convert --to hf from hf
    assert_line --regexp '^left out +exp_avg of 7 parameters$'
    run -0 zs-checkpoint diff hf all # the verdict is of the weights; the rest is named
    assert_line --regexp "^not compared +.*exp_avg.* of all: hf holds weights alone"
    [ "$(ls hf)" = model.safetensors ] || complain "$name: $(ls hf)"
    rm -r from all hf
  done
  unpack plain from
  run -0 zs-checkpoint convert --to hf from hf
  assert_line --regexp "^to load it +copy the model's config.json, and its tokenizer, into hf: "
  rm -r hf
  echo '{}' >from/config.json
  run -0 zs-checkpoint convert --to hf from hf
  assert_line --regexp "^to load it +from_pretrained reads it; copy the model's tokenizer into hf$"
  rm -r from hf
  unpack $z2 z2
  rm "$(shards 0)"
  run -2 zs-checkpoint convert --to hf z2 out
  assert_output --partial 'the file of rank 0 is missing'
  assert_output --partial 'a checkpoint that is not whole is not converted'
  mkdir there
  unpack $z2 z2
  run -2 zs-checkpoint convert --to hf z2 there
  assert_output --partial 'there: is there already'
  [ -z "$(find . -maxdepth 1 -name '.zs-tmp-*' -o -maxdepth 1 -name out)" ] || complain "something is left: $(ls -A)"
  verdict
}

# converts FROM TO WORDS...: converts, and what is read of TO is what FROM held: nothing differs, and nothing of these is left out.
converts() {
  run -0 zs-checkpoint convert "$1" "$2" "${@:3}"
  assert_line --regexp '^read back +equal, every bit$'
  refute_line --regexp '^left out +(float32|exp_avg|exp_avg_sq|step|schedule)'
  zs-checkpoint verify "$2" >verified || complain "$*: $(cat verified)"
  status=0
  zs-verify "$1" "$2" >said || status=$?
  [[ $status != 1 && $(cat said) == *"exp_avg: equal: 305 elements"* ]] || complain "$*: $(cat said)"
}

@test "convert: to PyTorch's and DeepSpeed's forms for any number of ranks and stage, and back" {
  for name in $z2 titan-ranks2 plain 0.19.8-deepspeed-stage3-ranks4-dtypefp32-sub_group60; do
    unpack "$name" from
    converts from dcp --to dcp --ranks 3
    [ "$(ls dcp)" = "$(printf '__%s_0.distcp\n' 0 1 2)" ] || complain "$name: $(ls dcp)"
    converts from one --to deepspeed --stage 1 --ranks 1
    [ "$(cat one/latest)" = "$(basename one/global_step*)" ] || complain "$name: $(cat one/latest)"
    converts dcp two --to deepspeed --stage 2 --ranks 5 --dtype bf16
    [ "$(ls two/global_step*/bf16_zero_pp_rank_*_mp_rank_00_optim_states.pt | wc -l)" = 5 ] || complain "$name: $(ls two/*)"
    converts two universal --to universal
    converts universal again --to dcp
    rm -r from dcp one two universal again
  done
  # Of ZeRO-3 the layout needs to know what is a buffer: a checkpoint of DeepSpeed says it, one of PyTorch does not.
  unpack $z2 z2
  converts z2 three --to deepspeed --stage 3 --ranks 3
  converts three back --to deepspeed --stage 2 --ranks 2
  run -3 zs-checkpoint diff z2 back
  assert_line --regexp '^only in z2 +bf16: ' # which ZeRO-3 does not save
  assert_line --regexp '^training +4 +4 +0 +0 +0 +0 +0$'
  unpack dcp-ranks2 dcp
  run -2 zs-checkpoint convert --to deepspeed --stage 3 dcp no
  assert_output --partial 'does not say of buf, fz.weight whether it is a buffer'
  # What a checkpoint has not, no form can have.
  zs-checkpoint convert --to hf z2 hf >/dev/null
  run -2 zs-checkpoint convert --to deepspeed hf no
  assert_output --partial "holds no optimizer's state"
  unpack accelerate-ranks2 accelerate
  run -2 zs-checkpoint convert --to universal accelerate no
  assert_output --partial 'shapes do not tell whose each is'
  run -2 zs-checkpoint convert --to hf --ranks 2 z2 no
  assert_output --partial '--ranks says nothing about --to hf'
  run -2 zs-checkpoint convert --to deepspeed --stage 4 z2 no
  [ ! -e no ] || complain "$(ls no)"
  verdict
}

@test "400 kinds of damage to a checkpoint: zs-checkpoint names the place, or no tensor changes; no code runs, no file is written" {
  for name in $z2 $z3 dcp-ranks2 $one; do unpack "$name" "$name"; done
  run /usr/bin/python3 "$ROOT/tests/checkpoints/mutate.py" 100 $z2 $z3 dcp-ranks2 $one/global_step3_universal
  [ "$status" = 0 ] || complain "$output"
  [[ $output =~ ^([0-9]+)' located, '([0-9]+)' the same'$ ]] || complain "$output"
  ((BASH_REMATCH[1] > 300 && BASH_REMATCH[1] + BASH_REMATCH[2] == 400)) || complain "$output"
  verdict
}

@test "paths: latest that leads elsewhere, loops of links, folders without a checkpoint" {
  unpack $z2 z2
  printf '../../etc' >z2/latest
  run -2 zs-checkpoint show z2
  assert_output --partial 'z2/latest: does not name a folder next to it'
  printf 'global_step9' >z2/latest
  run -2 zs-checkpoint show z2
  assert_output --partial 'names global_step9, which is not there'
  ln -s loop loop
  run -2 zs-checkpoint show loop
  mkdir empty
  run -2 zs-checkpoint show empty
  assert_output --partial 'empty: is a folder without anything that zs knows; zs-checkpoint takes '
  mkdir links && ln -s . links/latest
  run -2 zs-checkpoint show links
}
