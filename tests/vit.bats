# SPDX-License-Identifier: Apache-2.0
# Vision transformers and images: from image files to accuracies, at every stage. lib/training/train/peer_test.cpp and
# lib/formats/image/image_test.cpp compare with transformers and Pillow.
setup_file() {
  load helper
  warm
  cd "$BATS_FILE_TMPDIR"
  command -v python3 >/dev/null || no_package python3
  python3 "$ROOT/tests/pictures.py" pictures 3 20
  zs-train --model_name tiny-vit --num_layers 2 --dataset pictures --max_steps 3 --batch_size 4 --save_final false --save_pretrained vit \
    --output_dir out >vit.log
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
  local ranks=$1 launch=()
  shift
  ((ranks == 1)) || launch=(mpirun --oversubscribe --bind-to none -n "$ranks")
  timeout "$HANG" "${launch[@]}" zs-train --max_steps 3 --save_final false --batch_size 2 \
    --gradient_accumulation_steps $((4 / ranks)) --output_dir out "$@"
}

@test "vit: one digest at every stage, on 1, 2 and 4 ranks, compiled schedule or not, of images that are cropped at random" {
  images="--max_steps 3 --save_final false --batch_size 2 --output_dir out --model_name vit --dataset pictures --dropout 0.1"
  for kernels in "" --compile; do
    training "cropped$kernels" 1 "$images --gradient_accumulation_steps 4 --use_augmentation --zero_stage 0 $kernels"
    for layout in "1 3 --deepcompile" "2 1 --deepcompile" "2 2" "4 3 --deepcompile --activation_checkpointing"; do
      read -r ranks stage schedule <<<"$layout"
      training "cropped$kernels" "$ranks" "$images --gradient_accumulation_steps $((4 / ranks)) --use_augmentation --zero_stage $stage --num_workers 2 $kernels $schedule"
    done
  done
  training whole 1 "$images --gradient_accumulation_steps 4"
  run -0 one_digest_each
  [ "$(cut -d' ' -f2 <<<"$output" | sort -u | wc -l)" = 3 ] || complain "$output"
  # The program itself.
  train 2 --model_name vit --dataset pictures --use_augmentation --dropout 0.1 --zero_stage 3 --num_workers 2 >log
  [[ $output == *"cropped $(digest log)"* ]] || complain "$(digest log) beside $output"
  verdict
}

@test "vit: zs-verify finds it exact, also of images that are made up, and a planted bit in it" {
  run -0 timeout "$HANG" mpirun --oversubscribe --bind-to none -n 2 zs-verify --model_name tiny-vit --num_layers 2 --iterations 3 --zero_stage 3 --batch_size 2
  [[ $output == *'verdict: exact'* ]] || complain "stage 3: $output"
  run -0 zs-verify --model_name vit --dataset pictures --iterations 3 --zero_stage 1 --compile --batch_size 2
  [[ $output == *'verdict: exact'* ]] || complain "folder: $output"
  run -1 zs-verify --model_name tiny-vit --num_layers 2 --iterations 3 --batch_size 2 --inject_fault 2:vit.encoder.layer.1.output.dense.weight:7
  [[ $output == *vit.encoder.layer.1.output.dense.weight* ]] || complain "planted: $output"
  verdict
}

@test "vit: a folder is what --save_pretrained writes, its first blocks, another image size, and a checkpoint to go on from" {
  train 1 --model_name vit --dataset pictures --learning_rate 0 --max_steps 1 --save_pretrained again >log
  [[ $(digest log) == "$(digest vit.log)" ]] || complain "other bits"
  cmp vit/model.safetensors again/model.safetensors || complain "other weights"
  cmp vit/config.json again/config.json || complain "other config.json"
  grep -q '"0": "class0"' vit/config.json || complain "no names of classes: $(cat vit/config.json)"
  train 1 --model_name vit --dataset pictures --num_layers 1 --learning_rate 0 >log || complain "one block: $(cat log)"
  train 2 --model_name vit --dataset pictures --image_size 48 --zero_stage 3 >large.log || complain "larger images: $(cat large.log)"
  train 1 --model_name vit --dataset pictures --image_size 48 --zero_stage 0 >log
  [[ $(digest log) == "$(digest large.log)" ]] || complain "larger images: other bits"
  grep -q 'run: seq_length=37' log || complain "not 36 patches: $(grep seq_length log)"
  train 2 --model_name vit --dataset pictures --max_steps 4 --save_steps 2 --use_augmentation --output_dir runs >whole.log
  train 1 --model_name vit --dataset pictures --max_steps 4 --use_augmentation --checkpoint "$(echo runs/2*/checkpoint_2)" --zero_stage 1 >rest.log
  [[ $(digest rest.log) == "$(digest whole.log)" ]] || complain "resumed: other bits"
  # A Trainer's checkpoint whose moments have no names, and no shapes that tell.
  rm -rf moments
  cp -r vit moments
  python_with torch python3-torch
  "$PYTHON" -c '
import torch
state = {i: {"step": torch.tensor(3.0), "exp_avg": torch.zeros(4), "exp_avg_sq": torch.zeros(4)} for i in range(3)}
torch.save({"state": state, "param_groups": [{"lr": 0.1, "params": [0, 1, 2]}]}, "moments/optimizer.pt")'
  run -2 train 1 --model_name vit --dataset pictures --checkpoint moments
  [[ $output == *"moments: does not tell which moments and how many updates are those of "*": --model_name moments takes its weights alone" ]] || complain "$output"
  run -2 zs-train --model_name vit --dataset pictures --image_size 50 --output_dir none
  [[ $output == "zs-train: vit/config.json: patch_size is 8, which does not divide the image size 50" ]] || complain "$output"
  run -2 zs-train --model_name vit --dataset pictures --seq_length 32 --output_dir none
  [[ $output == *"model vit takes images, of 17 tokens by its image size and patch size: leave seq_length 32 out" ]] || complain "$output"
  run -2 zs-train --model_name tiny --image_size 32 --output_dir none
  [[ $output == *"--image_size has no effect here: it needs a model that takes images; leave it out" ]] || complain "$output"
  verdict
}

@test "vit: a classifier of another number of labels begins anew, and says so; without being asked it is refused" {
  run -0 train 1 --model_name vit --num_labels 7 --dataset pictures
  [[ $output == *"note: classifier.weight starts from initial values: vit/model.safetensors has none of 7 labels"* ]] || complain "$output"
  python3 "$ROOT/tests/pictures.py" four 4 3
  run -2 train 1 --model_name vit --dataset four
  [[ $output == *"four: has 4 classes, the model 3 labels: set --num_labels 4"* ]] || complain "$output"
  [[ $output != *note:* ]] || complain "begun: $output"
  verdict
}

# labels FOLDER NAME...: vit in FOLDER, with these names of its labels.
labels() {
  local folder=$1
  shift
  rm -rf "$folder"
  cp -r vit "$folder"
  jq '.id2label = ($ARGS.positional | to_entries | map({(.key | tostring): .value}) | add) | .label2id = (.id2label | with_entries({key: .value, value: (.key | tonumber)}))' \
    vit/config.json --args "$@" >"$folder/config.json"
}

@test "vit: the labels in a folder's config.json number the classes, and an export keeps them" {
  targets() { /usr/bin/python3 -c 'import h5py; print(sorted(set(h5py.File("ordered.h5")["targets"][:].tolist())), h5py.File("ordered.h5")["targets"][:3].tolist())'; }
  labels ordered class2 class0 class1
  run -0 train 1 --model_name ordered --dataset pictures --eval --dump_logits ordered.h5 --save_pretrained kept
  [[ $output == *"class class1: accuracy"* && $output != *note:* ]] || complain "$output"
  [[ $(targets) == "[0, 1, 2] [1, 2, 0]" ]] || complain "class0 is not label 1: $(targets)"
  cmp <(jq .id2label ordered/config.json) <(jq .id2label kept/config.json) || complain "exported $(jq -c .id2label kept/config.json)"
  # Two of the three classes.
  rm -rf two
  mkdir two
  cp -r pictures/class1 pictures/class2 two
  run -0 train 1 --model_name ordered --dataset two --eval --dump_logits ordered.h5
  [[ $output == *"note: two has images of 2 of the 3 labels in ordered/config.json"* ]] || complain "$output"
  [[ $(targets) == "[0, 2]"* ]] || complain "not class2 and class1: $(targets)"
  mv two/class1 two/other
  run -2 train 1 --model_name ordered --dataset two
  [[ $output == *"two: class 'other' is not a label in ordered/config.json: write the name of each class at its number in id2label, or set --num_labels 2 for a new classifier" ]] || complain "$output"
  run -0 train 1 --model_name ordered --dataset two --num_labels 2 --save_pretrained new
  [[ $(jq -c .id2label new/config.json) == '{"0":"class2","1":"other"}' ]] || complain "$(jq -c .id2label new/config.json)"
  # Names without meaning are no labels; other names are said.
  labels numbers LABEL_0 LABEL_1 LABEL_2
  run -0 train 1 --model_name numbers --dataset pictures --save_pretrained named
  [[ $output != *note:* ]] || complain "$output"
  cmp vit/config.json named/config.json || complain "$(cat named/config.json)"
  run -2 train 1 --model_name numbers --dataset two
  [[ $output == *"two: class 'class2' is not a label in numbers/config.json"* ]] || complain "$output"
  labels others crane cat crane
  run -0 train 1 --model_name others --dataset pictures
  [[ $output == *"note: no class of pictures is a label in others/config.json: classes are numbered in alphabetical order, 'class0' is 0, there 'crane'"* ]] || complain "$output"
  mv two/other two/crane
  run -2 train 1 --model_name others --dataset two
  [[ $output == *"two: class 'class2' is not a label"* ]] || complain "$output"
  # A checkpoint whose labels have other numbers.
  train 1 --model_name vit --dataset pictures --save_steps 1 --output_dir numbered >log
  run -2 train 1 --model_name ordered --dataset pictures --checkpoint "$(echo numbered/2*/checkpoint_1)"
  [[ $output == *'id2label is ["class0","class1","class2"], of the model ["class2","class0","class1"]: it is a checkpoint of another model' ]] || complain "$output"
  verdict
}

@test "vit: preprocessor_config.json is honoured or refused, and an export has the one that was trained with" {
  local small=(--dataset pictures --max_steps 1 --batch_size 1 --gradient_accumulation_steps 1 --validation_fraction 0.5)
  file() { jq -c "$1" "$2/preprocessor_config.json"; }
  rm -rf seen
  cp -r vit seen
  [[ $(file '[.size.height, .image_mean[0], .resample]' vit) == "[32,0.5,2]" ]] || complain "$(cat vit/preprocessor_config.json)"
  jq '.do_normalize = false' vit/preprocessor_config.json >seen/preprocessor_config.json
  train 1 --model_name seen "${small[@]}" --dump_batches raw.h5 --save_pretrained without
  run -0 /usr/bin/python3 -c 'import h5py; x = h5py.File("raw.h5")["pixels"][:]; print(x.min() >= 0, x.max() <= 1, abs(x * 255 - (x * 255).round()).max() < 1e-3)'
  [[ $output == "True True True" ]] || complain "normalised: $output"
  [[ $(file '.do_normalize and .image_mean == [0, 0, 0] and .image_std == [1, 1, 1]' without) == true ]] || complain "$(cat without/preprocessor_config.json)"
  train 1 --model_name seen "${small[@]}" --image_mean 0.2,0.3,0.4 --image_std 0.1 --image_size 48 --use_augmentation --save_pretrained other --save_final true --output_dir exported
  [[ $(file '[.size.shortest_edge, .image_mean, .image_std[2], .do_center_crop]' other) == "[48,[0.2,0.3,0.4],0.1,true]" ]] || complain "$(cat other/preprocessor_config.json)"
  zs-runs export "$(echo exported/2*)" again-exported
  cmp other/preprocessor_config.json again-exported/preprocessor_config.json || complain "another in the run's export"
  jq '.resample = 0' vit/preprocessor_config.json >seen/preprocessor_config.json
  run -2 train 1 --model_name seen "${small[@]}"
  [[ $output == *"seen/preprocessor_config.json: resample is 0, zs knows 2 (bilinear) and 3 (bicubic): write one of them" ]] || complain "$output"
  verdict
}

@test "vit: it learns the classes; accuracies are in the log, the record and the index, and logits in a file" {
  for part in train valid test; do python3 "$ROOT/tests/pictures.py" parted/$part 3 "$([[ $part == train ]] && echo 60 || echo 8)" $part; done
  timeout "$HANG" zs-train --model_name tiny-vit --num_layers 2 --dataset parted --max_steps 60 --batch_size 8 --learning_rate 1e-3 --eval --eval_steps 30 --compile \
    --save_final false --save_pretrained learnt --dump_logits logits.h5 --output_dir taught --results results.json >log
  accuracy=$(sed -n 's/^test: .*accuracy: \([0-9.]*\).*/\1/p' log)
  awk "BEGIN { exit !($accuracy > 0.7) }" || complain "it learns nothing: $(tail -8 log)"
  jq -e --argjson a "$accuracy" '.zero3.final_accuracy == 100 * $a' results.json || complain "another accuracy: $(cat results.json)"
  grep -q '^class class[012]: accuracy: ' log || complain "no table of classes"
  grep -qE 'Step 30, .*valid_accuracy: ' log || complain "no accuracy in the line of a step: $(grep 'Step 30' log)"
  run -0 zs-runs show "$(basename taught/2*)" --registry taught
  for key in final_valid_loss final_valid_accuracy test_loss test_accuracy total_steps total_epochs model_size_M samples_per_second class_accuracy.class0; do
    [[ $output == *"$key"* ]] || complain "not in the index: $key"
  done
  run -0 zs-runs --registry taught --sort_by valid_accuracy --format tsv
  [[ $output == *final_valid_accuracy* ]] || complain "not sorted: $output"
  # A report of it has images and nats, and nothing of tokens.
  zs-report log -o report.md
  grep -qE 'images \((k/s|/s)\)' report.md || complain "no images per second"
  grep -q 'total_epochs\|epochs of the training' report.md || complain "no epochs"
  run -1 grep -i token report.md
  zs-plot loss log -o loss.svg
  grep -q 'loss (nats)' loss.svg || complain "the loss of images is not in nats"
  zs-parse --format h5 log -o parsed.h5
  run -0 /usr/bin/python3 -c 'import h5py; f = h5py.File("parsed.h5"); print([d["loss"].attrs["unit"] for d in f["runs"].values()])'
  [[ $output == *nats* && $output != *token* ]] || complain "in HDF5: $output"
  # The same model alone, by other ranks.
  run -0 timeout "$HANG" mpirun --oversubscribe --bind-to none -n 2 zs-train --model_name learnt --dataset parted --batch_size 8 --eval_only --output_dir none --zero_stage 3 --compile
  [[ ${lines[0]} == "$(grep '^validation: ' log)" ]] || complain "alone: $output"
  [[ $output == *"$(grep '^test: ' log)"* ]] || complain "alone: $output"
  [ ! -e none ] || complain "a run was made"
  run -0 /usr/bin/python3 -c '
import h5py
f = h5py.File("logits.h5")
logits, targets = f["logits"][:], f["targets"][:]
assert logits.shape == (24, 3) and targets.shape == (24,), (logits.shape, targets.shape)
assert f["sample"][:].tolist() == list(range(24)), f["sample"][:]
print((logits.argmax(1) == targets).mean())'
  awk "BEGIN { exit !(($output - $accuracy)^2 < 1e-12) }" || complain "logits say $output, the log $accuracy"
  verdict
}

@test "vit: bad images are counted and named, and left out where that is asked for" {
  rm -rf bad
  cp -r pictures bad
  printf 'GIF89a' >bad/class1/00.png
  truncate -s -30 bad/class2/03.png
  run -2 train 1 --model_name vit --dataset bad
  [[ $output == "zs-train: bad: 2 images are bad: "*"is a GIF file: zs reads JPEG and PNG"*"is cut short"*": mend them, or leave them out by --skip_bad_images" ]] || complain "$output"
  run -0 train 2 --model_name vit --dataset bad --skip_bad_images
  [[ $output == *"note: bad: left out, 2 images are bad: "* ]] || complain "$output"
  printf 'x' | dd of=bad/class0/05.png bs=1 seek=60 conv=notrunc status=none
  rm bad/class1/00.png bad/class2/03.png
  run -2 train 1 --model_name vit --dataset bad --num_epochs 1 --max_steps 0
  [[ $output == *"bad/class0/05.png: is damaged: "*": mend it, or leave such images out by --skip_bad_images" ]] || complain "$output"
  mkfifo bad/class0/fifo.png
  run -2 timeout "$HANG" zs-train --model_name vit --dataset bad --output_dir none
  [[ $output == "zs-train: bad/class0/fifo.png: is not a regular file, cannot be mapped" ]] || complain "$output"
  rm bad/class0/fifo.png
  mkdir bad/none
  run -2 train 1 --model_name tiny-vit --dataset bad
  [[ $output == "zs-train: bad/none: is a class without an image (*.jpg, *.jpeg, *.png)" ]] || complain "$output"
  run -2 train 1 --model_name tiny-vit --dataset /usr/share/common-licenses
  [[ $output == *"images are expected in a folder for each class, at least two" ]] || complain "$output"
  verdict
}

@test "vit: a data set's name is looked for in \$ZS_DATA, and where to put it is said" {
  mkdir -p data
  ln -sfn ../pictures data/food101
  ZS_DATA=data run -0 train 1 --model_name vit --dataset_name ethz/food101
  [[ $output == *"run: dataset=data/food101"* ]] || complain "$output"
  ZS_DATA=data run -2 zs-train --dataset_name wikitext --output_dir none
  [[ $output == "zs-train: wikitext: No such file or directory, nor in \$ZS_DATA: put the data set at data/wikitext (nothing is downloaded)" ]] || complain "$output"
  run -2 env -u ZS_DATA zs-train --dataset_name wikitext --output_dir none
  [[ $output == "zs-train: wikitext: No such file or directory; a data set's name is looked for in the folder \$ZS_DATA, which is not set" ]] || complain "$output"
  verdict
}
