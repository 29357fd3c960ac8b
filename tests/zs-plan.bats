# SPDX-License-Identifier: Apache-2.0
# zs-plan: predictions for other stages, ranks and nodes from a measured step, and what it does not predict.
# shellcheck disable=SC2154 # stderr is of bats' run
setup() {
  load helper
  warm
  cd "$BATS_TEST_TMPDIR"
}

# measured RANKS OPTION...: profile.json of a training
measured() {
  rm -rf runs
  mpirun --oversubscribe -n "$1" zs-train --model_name tiny --num_layers 2 --seq_length 64 --max_steps 4 --save_final false --output_dir runs \
    --deepcompile --gradient_accumulation_steps 2 "${@:2}" >log
  cp runs/2*/profile.json "${profile:-profile.json}"
}

@test "zs-plan: a training with passes leaves its profile, without another bit, and predicts from it" {
  measured 2
  grep -q '^note: the times of a step.s operations are in runs/2.*/profile.json$' log
  mpirun --oversubscribe -n 2 zs-train --model_name tiny --num_layers 2 --seq_length 64 --max_steps 4 --save_final false --output_dir other \
    --gradient_accumulation_steps 2 >plain
  [ "$(sed -n 's/^state_digest: //p' log)" = "$(sed -n 's/^state_digest: //p' plain)" ]
  run ! compgen -G 'other/*/profile.json'
  jq -e '.zs_profile == 2 and .slots_of_node > 0 and .config.n_layer == 2 and .state_bytes > 0 and .peak_bytes > .state_bytes and .shape.ranks == 2 and .tokens == 64 and (.operations | map(select(.operation == "backward")) | length) == 4' profile.json
  jq -e 'all(.operations[]; .seconds >= 0) and .peak_bytes > 0' profile.json
  zs-plan runs/2* --format json >plan.json
  # What was measured is predicted as it was, in bytes and in its parts.
  jq -e \
    '.candidates[] | select(.zero_stage == 3 and .gradient_accumulation_steps == 2) | .step_seconds > 0 and .why_not == ""' plan.json
  zs-plan --profile profile.json --nodes 2 --gpus_per_node 2 --bandwidth 1G --latency 1e-4 --model tiny >table
  [[ $(sed -n 2p table) == "2 nodes: the fastest that fits is stage "*" s a step, "*" others fit" ]] || complain "$(head -3 table)"
  [ "$(grep -c '^stage' table)" = 10 ] || complain "$(cat table)"
  zs-plan --profile profile.json --nodes 2 --gpus_per_node 2 --bandwidth 1G --latency 1e-4 --model tiny --all >table
  grep -q 'stage 3, hpZ 2, accumulation 2' table
}

@test "zs-plan: what does not fit is said to, with all that is missing, and nothing fits with status 1" {
  measured 2
  zs-plan profile.json --nodes 4 --gpus_per_node 2 --format json >all.json
  most=$(jq '[.candidates[] | select(.gradient_accumulation_steps == 1) | .memory_bytes] | max' all.json)
  least=$(jq '[.candidates[] | select(.gradient_accumulation_steps == 1) | .memory_bytes] | min' all.json)
  awk -v a="$least" -v b="$most" 'BEGIN { exit !(a < b) }'
  zs-plan profile.json --nodes 4 --gpus_per_node 2 --memory "$least" --all >table
  grep -q 'needs .* more' table
  run -1 --separate-stderr zs-plan profile.json --memory 1k
  [[ $output == *"needs "* ]]
  # Of one rank's profile nothing is known of what travels.
  profile=alone.json measured 1
  run -1 --separate-stderr zs-plan alone.json --gpus_per_node 2
  [[ $output == *"not measured: collectives within a node"* ]]
}

@test "zs-plan: scaling curves over numbers of nodes, as a picture and in the terminal; all layers of a model from some" {
  measured 2
  zs-plan profile.json --nodes 1,2,4,8 --gpus_per_node 2 --bandwidth 1G --format tsv >table
  [ "$(cut -f 1 table | sort -u | xargs)" = "1 2 4 8 nodes" ]
  zs-plan profile.json --nodes 1,2,4,8 --gpus_per_node 2 --bandwidth 1G --memory 1G -o plan.svg
  for text in "Predicted scaling" "stage 3, hpZ 2" "limit: --memory" "Memory of a rank"; do grep -q ">$text<" plan.svg || complain "no $text"; done
  zs-plan profile.json --nodes 1,2 --gpus_per_node 2 --format figure >text
  grep -q 'Throughput' text || complain "$(cat text)"
  run -2 --separate-stderr zs-plan profile.json -o plan.svg
  [[ $stderr == *"a figure is over numbers of nodes: give two or more, --nodes 1,2,4,8"* ]] || complain "$stderr"
  run -2 --separate-stderr zs-plan profile.json --nodes 1,x
  [[ $stderr == *"--nodes: 'x' is not a number of nodes"* ]] || complain "$stderr"
  # The folder of a model, as Hugging Face writes it: its config.json is enough.
  mkdir model
  jq '.config | .n_layer = 12 | .n_inner = null' profile.json >model/config.json
  memory() { jq '[.candidates[] | select(.zero_stage == 0)][0].memory_bytes' "$1"; }
  zs-plan profile.json --model model --format json >twelve
  zs-plan profile.json --num_layers 12 --format json >same
  zs-plan profile.json --format json >two
  [ "$(jq -r .model twelve)" = model ]
  [ "$(jq -c .candidates twelve)" = "$(jq -c .candidates same)" ]
  # Ten layers more of 198,272 parameters: of each 16 bytes and a sum of gradients, and their activations.
  awk -v a="$(memory twelve)" -v b="$(memory two)" 'BEGIN { exit !(a - b > 10 * 198272 * 16) }'
  jq '.n_embd = 64' model/config.json >other && mv other model/config.json
  run -2 --separate-stderr zs-plan profile.json --model model
  [[ $stderr == *"model/config.json: n_embd is 64, and of the profile's model 128: measure a step of this one"* ]] || complain "$stderr"
  verdict
}

@test "zs-plan: of a model that takes images the rate is images per second, in tables and figures" {
  mpirun --oversubscribe -n 2 zs-train --model_name tiny-vit --num_layers 1 --batch_size 8 --max_steps 4 --save_final false --output_dir runs --deepcompile >log
  cp runs/2*/profile.json profile.json
  jq -e '.images == 8 and (has("tokens") | not)' profile.json
  zs-plan profile.json --gpus_per_node 2 --accumulation 1 --format json >plan.json
  jq -e '.candidates[0] | (has("tokens_per_second") | not) and (.images_per_second * .step_seconds - 16 | fabs < 1e-9)' plan.json
  python3 "$ROOT/tests/schema.py" "$ROOT/share/schemas/zs-plan.json" plan.json || complain "not as its schema says"
  zs-plan profile.json --gpus_per_node 2 >table
  zs-plan profile.json --nodes 1,2 --gpus_per_node 2 -o plan.svg
  grep -q 'images/s' table || complain "$(head -3 table)"
  grep -q '>images of a rank, as a share of the fastest (%)<' plan.svg || complain "no images in the figure"
  run -1 grep -i token table plan.svg
  # Images of another size are more tokens and another model.
  mkdir model
  jq '.config | .image_size = 64' profile.json >model/config.json
  run -2 --separate-stderr zs-plan profile.json --model model
  [[ $stderr == *"model/config.json: image_size is 64, and of the profile's model 32: measure a step of this one"* ]] || complain "$stderr"
  verdict
}

@test "zs-plan: the plan's own prediction, and what is no profile" {
  measured 2
  zs-train --model_name tiny --num_layers 2 --seq_length 64 --output_dir runs --zero_stage 2 --plan_profile profile.json --print_plan --cost >plan
  grep -Eq '^# predicted: step [0-9.e-]+ s, peak [0-9.]+ [kMG]?B, sent by a rank 0 B' plan || { tail -n 4 plan; false; }
  run -2 --separate-stderr zs-train --model_name tiny --output_dir runs --print_plan --cost
  [[ $stderr == *"--cost predicts from measurements: give --plan_profile too"* ]] || complain "$stderr"
  run -2 --separate-stderr zs-train --model_name tiny --num_layers 3 --output_dir runs --plan_profile profile.json --deepcompile --max_steps 1
  [[ $stderr == *"the profile is of another model: its unit "* ]] || complain "$stderr"
  run -2 --separate-stderr zs-plan profile.json --model gpt2
  [[ $stderr == *"profile.json: is the profile of tiny, not of gpt2"* ]] || complain "$stderr"
  head -c 200 profile.json >cut.json
  run -2 --separate-stderr zs-plan cut.json
  [[ $stderr == "zs-plan: cut.json: is not JSON: "* ]] || complain "$stderr"
  jq '.shape.ranks = 0' profile.json >wrong.json
  run -2 --separate-stderr zs-plan wrong.json
  [ "$stderr" = "zs-plan: wrong.json: shape.ranks is 0, not in 1..16777216: is this the profile.json of a run?" ] || complain "$stderr"
  echo 'step 1' >notes.txt
  run -2 --separate-stderr zs-plan notes.txt
  [ "$stderr" = "zs-plan: notes.txt: is a text; zs-plan takes the profile.json of a run, and a run that has one; zs-train --deepcompile writes it" ] || complain "$stderr"
  jq '.zs_profile = 1' profile.json >old.json
  run -2 --separate-stderr zs-plan old.json
  [[ $stderr == "zs-plan: old.json: is the profile of an earlier zs: measure again"* ]] || complain "$stderr"
  run -2 --separate-stderr zs-plan profile.json --memory 80X
  [[ $stderr == *"--memory: '80X' is not a number of bytes: 80G"* ]] || complain "$stderr"
  verdict
}
