# SPDX-License-Identifier: Apache-2.0
# zs-sweep: grids and random draws become configurations, condition sets become options.
setup() {
  load helper
  cd "$BATS_TEST_TMPDIR"
  printf 'training: {seed: 1, batch_size: 8}\nmine: kept\n' >base.yaml
  printf 'sweep_name: s\nparameters:\n  training.learning_rate: {values: [1e-3, 6e-4]}\n  zero.stage: {values: [1, 2, 3]}\n' >grid.yaml
  printf 'sweep_name: r\nstrategy: random\nnum_runs: 3\nseed: 5\nparameters:\n  training.learning_rate: {min: 1e-5, max: 1e-2, distribution: log_uniform}\n  zero.stage: {values: [1, 2, 3]}\n' >random.yaml
}

@test "zs-sweep: a grid of 2 x 3 makes 6 configurations, a manifest, and prints the paths" {
  run -0 --separate-stderr zs-sweep base.yaml grid.yaml -o out
  [ -z "$stderr" ]
  [ "${#lines[@]}" = 6 ]
  [ "${lines[0]}" = out/s_001.yaml ]
  [ "$(cut -f3,4 out/manifest.tsv)" = $'training.learning_rate\tzero.stage\n1e-3\t1\n1e-3\t2\n1e-3\t3\n6e-4\t1\n6e-4\t2\n6e-4\t3' ]
  [ "$(sed 's/ *#.*//' out/s_006.yaml)" = $'training:\n  seed: 1\n  batch_size: 8\n  learning_rate: 6e-4\nmine: kept\nzero:\n  stage: 3\nrun:\n  name: s_006\nsweep_name: s' ]
  grep -q 'learning_rate: 6e-4 .*# grid.yaml:3$' out/s_006.yaml
  [ "$(zs-sweep base.yaml grid.yaml --count)" = 6 ]
}

@test "zs-sweep: a random sweep of 3 makes 3 distinct ones, and the same again" {
  run -0 zs-sweep base.yaml random.yaml -o a
  [ "${#lines[@]}" = 3 ]
  [ "$(tail -n +2 a/manifest.tsv | cut -f3- | sort -u | wc -l)" = 3 ]
  zs-sweep base.yaml random.yaml -o b
  diff -r a b
  sed 's/seed: 5/seed: 6/' random.yaml >other.yaml
  run ! cmp <(zs-sweep base.yaml random.yaml --dry_run) <(zs-sweep base.yaml other.yaml --dry_run)
  sed 's/num_runs: 3/num_runs: 5/' random.yaml >longer.yaml
  zs-sweep base.yaml longer.yaml --dry_run | head -n 4 | diff - a/manifest.tsv
}

@test "zs-sweep: --dry_run prints the manifest and writes nothing" {
  run -0 zs-sweep base.yaml grid.yaml -o out --dry-run
  [ "${#lines[@]}" = 7 ]
  [ ! -e out ]
}

@test "zs-sweep: a folder with another sweep is left alone, unless forced; then nothing old stays" {
  zs-sweep base.yaml grid.yaml -o out
  zs-sweep base.yaml grid.yaml -o out
  echo mine >out/mine.yaml
  refuses_with "zs-sweep: out/manifest.tsv: lists another sweep: choose another folder, or give --force to replace it" zs-sweep base.yaml random.yaml -o out
  [ -e out/s_006.yaml ]
  zs-sweep base.yaml random.yaml -o out --force
  [ "$(cd out && echo *)" = "manifest.tsv mine.yaml r_001.yaml r_002.yaml r_003.yaml" ]
}

@test "zs-sweep: a list by itself is a sweep, of a setting by its option's name" {
  echo 'model: {name: tiny}' >flat.yaml
  echo 'learning_rate: [1e-4, 3e-4]' >rates.yaml
  run -0 --separate-stderr zs-sweep flat.yaml rates.yaml -o flat
  [ -z "$stderr" ]
  [ "$(grep -ho 'learning_rate: [0-9e-]*' flat/*_00*.yaml | xargs)" = "learning_rate: 1e-4 learning_rate: 3e-4" ]
}

@test "zs-sweep: names of options in the base are their settings, and a sweep replaces them" {
  printf 'model_name: tiny\nlora_rank: 8\nmax_steps: 3\n' >words.yaml
  echo 'lora_rank: [4, 16]' >ranks.yaml
  run -0 --separate-stderr zs-sweep words.yaml ranks.yaml -o words
  [ -z "$stderr" ]
  [ "$(grep -ho 'lora_rank: [0-9]*' words/*_00*.yaml | xargs)" = "lora_rank: 4 lora_rank: 16" ]
  grep -q 'max_steps: 3' words/*_001.yaml
  [ -z "$(zs-sweep words.yaml ranks.yaml --run 'python train.py {options}' --dry_run 2>&1 | grep warning)" ]
  printf 'max_steps: 3\ntraining: {max_steps: 4}\n' >twice.yaml
  refuses_with "zs-sweep: twice.yaml:1: max_steps and training.max_steps are one setting: give it once" zs-sweep twice.yaml ranks.yaml -o out
}

@test "zs-sweep: either file may be stdin" {
  zs-sweep base.yaml - --dry_run <grid.yaml | diff - <(zs-sweep base.yaml grid.yaml --dry_run)
  zs-sweep - grid.yaml --dry_run <base.yaml | diff - <(zs-sweep base.yaml grid.yaml --dry_run)
}

@test "zs-sweep: mistakes are located, and nothing is written" {
  printf 'training:\n  batch_size 8\n  seed: 1\n' >typo.yaml
  refuses_with "zs-sweep: typo.yaml:3:7: illegal map value" zs-sweep typo.yaml grid.yaml -o out
  printf 'sweep_name: s\nparameters:\n  zero.stage: {values: [1, 4]}\n' >bad.yaml
  refuses_with "zs-sweep: bad.yaml:3: zero.stage: '4' is not a whole number from 0 to 3" zs-sweep base.yaml bad.yaml -o out
  refuses_with "zs-sweep: expected --output DIR (or --count, --dry_run) (see zs-sweep --help)" zs-sweep base.yaml grid.yaml
  refuses_with "zs-sweep: expected BASE.yaml SWEEP.yaml (see zs-sweep --help)" zs-sweep base.yaml
  printf 'sweep_name: s\nparameters:\n  zero.stag: {values: [1]}\n' >near.yaml
  refuses_with "zs-sweep: near.yaml:3: all runs would be the same: nothing reads 'zero.stag', did you mean 'zero.stage'?" zs-sweep base.yaml near.yaml -o out
  [ ! -e out ]
}

@test "zs-sweep: a key of the base that looks like a setting and is none is a warning, in a section of zs an error, with its line" {
  printf 'training:\n  batchsize: 8\n' >near.yaml
  refuses_with "zs-sweep: near.yaml:2: nothing reads 'training.batchsize', did you mean 'training.batch_size'?" zs-sweep near.yaml grid.yaml -o out
  printf 'epochs: 8\n' >near.yaml
  run -0 --separate-stderr zs-sweep near.yaml grid.yaml -o out
  [ "${stderr_lines[0]}" = "zs-sweep: warning: near.yaml:1: nothing reads 'epochs', did you mean 'training.num_epochs'?" ]
  [ "${#stderr_lines[@]}" = 1 ]
}

@test "zs-sweep: a random sweep that asks for more runs than there are gets all, and a warning" {
  printf 'sweep_name: r\nstrategy: random\nnum_runs: 3\nparameters: {initialization.init_std: {values: [0.01, 0.02]}}\n' >many.yaml
  run -0 --separate-stderr zs-sweep base.yaml many.yaml -o out
  [ "$stderr" = "zs-sweep: warning: many.yaml:3: num_runs is 3, the parameters have only 2 combinations: all of them are taken" ]
  [ "$(cut -f3 out/manifest.tsv | tail -n +2 | sort | xargs)" = "0.01 0.02" ]
  [ "$(zs-sweep base.yaml many.yaml --count 2>/dev/null)" = 2 ]
}

@test "zs-sweep: a bomb of aliases is refused, where its end would never come" {
  {
    echo "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"
    for i in {1..9}; do echo "a$i: &a$i [$(printf "*a$((i - 1)),%.0s" {1..9})*a$((i - 1))]"; done
  } >bomb.yaml
  run -2 timeout "$HANG" zs-sweep bomb.yaml grid.yaml -n
  [[ $output == "zs-sweep: bomb.yaml:"*": too many values: aliases repeat one far more often than it is written" ]]
  run -2 timeout "$HANG" zs-sweep --conditions bomb.yaml set
  [[ $output == "zs-sweep: bomb.yaml:"*": too many values: "* ]]
}

@test "zs-sweep: the full comparison is six conditions" {
  run -0 --separate-stderr zs-sweep --conditions "$ROOT/share/conditions/batch.yaml" full_comparison
  [ "$output" = $'z1_baseline\t--backend zero --zero_stage 1\nz2_baseline\t--backend zero --zero_stage 2\nz3_baseline\t--backend zero --zero_stage 3\nz1_deepcompile\t--backend zero --zero_stage 1 --deepcompile\nz2_deepcompile\t--backend zero --zero_stage 2 --deepcompile\nz3_deepcompile\t--backend zero --zero_stage 3 --deepcompile' ]
}

@test "zs-sweep: --list names the sets; each of them has conditions; a user may add one" {
  run -0 zs-sweep --list
  [ "$(cut -f1 <<<"$output" | sort | xargs)" = "compile_comparison comprehensive_comparison fsdp_vs_ddp full_comparison memory_efficiency minimal_test zero_comparison zero_vs_fsdp zero_vs_fsdp_with_deepcompile" ]
  for set in $(cut -f1 <<<"$output"); do
    [ "$(zs-sweep --conditions batch "$set" | wc -l)" -ge 2 ]
  done
  printf 'sets:\n  mine:\n    description: two\n    conditions: {a: --zero_stage 1, b: {zero_stage: 3, set: "run.name=x y"}}\n' >mine.yaml
  [ "$(zs-sweep --conditions mine.yaml mine)" = $'a\t--zero_stage 1\nb\t--zero_stage 3 --set '"'run.name=x y'" ]
}

@test "zs-sweep: an unknown set names the nearest, an unknown file says where it looked" {
  refuses_with "zs-sweep: batch: no set 'full_comparson', did you mean 'full_comparison'?" zs-sweep --conditions batch full_comparson
  refuses_with "zs-sweep: conditions/none.yaml: not found in $PWD (ZS_SHARE names another folder)" env ZS_SHARE="$PWD" zs-sweep --conditions none x
}

@test "zs-sweep: the configurations that come with zs hold no unknown key" {
  for file in train config; do
    run -0 --separate-stderr zs-sweep "$ROOT/share/configs/$file.yaml" "$ROOT/share/configs/sweep.yaml" --dry_run
    [ -z "$stderr" ]
  done
}

@test "zs-sweep: --cells prints what zs-runs plan reads: names and words, defaults before them, the caller's behind" {
  run -0 --separate-stderr zs-sweep base.yaml grid.yaml -o out --cells -- --dataset "a b.txt"
  [ "${lines[5]}" = '["s_006","out/s_006.yaml","--dataset","a b.txt"]' ]
  [ "${#lines[@]}" = 6 ]
  printf 'sets: {one: {description: x, conditions: {a: "--run_name \x27x y\x27", b: {num_epochs: 2}}}}\n' >set.yaml
  run -0 zs-sweep --conditions set.yaml one --cells "--defaults=--eval --max_steps 120 --lr_warmup_steps 3" -- --seed 7
  [ "${lines[0]}" = '["a","--eval","--max_steps","120","--lr_warmup_steps","3","--run_name","x y","--seed","7"]' ]
  [ "${lines[1]}" = '["b","--eval","--lr_warmup_steps","3","--num_epochs","2","--seed","7"]' ]
  run -0 zs-sweep --conditions set.yaml one --cells "--defaults=--max_steps 120" -- --num_epochs 1
  [[ ${lines[0]} != *max_steps* ]]
  run -0 zs-sweep --conditions set.yaml one --cells "--defaults=--model_name tiny --seq_length 64 --max_steps 120" -- --model_name tiny-vit
  [ "${lines[0]}" = '["a","--model_name","tiny","--max_steps","120","--run_name","x y","--model_name","tiny-vit"]' ]
  printf "sets: {one: {description: x, conditions: {a: \"--run_name it's\"}}}\n" >quote.yaml
  refuses_with "zs-sweep: condition a: unmatched quote in --run_name it's" zs-sweep --conditions quote.yaml one --cells
}
