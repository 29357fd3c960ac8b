#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Log-probabilities of a generator and a trainer: dumps of all forms, faults, verdicts.

setup_file() { load helper && warm_up; }
teardown_file() { load helper && cool_down; }

setup() {
  load helper
  cd "$BATS_TEST_TMPDIR"
}

# says TEXT: what was printed last has it; a pattern of grep.
says() { grep -q -- "$1" <<<"$output" || { printf 'lacks: %s\n%s\n' "$1" "$output"; return 1; }; }

# dump FORM FAULT FOLDER
dump() { python3 "$BATS_TEST_DIRNAME/rollouts.py" "$@"; }

# relation FAULT STATUS TEXT
relation() {
  dump zs "$1" "$1"
  run -"$2" zs-verify "$1"
  says "$3"
}

@test "rollout: equal log-probabilities are exact, rounding is rounding" {
  relation exact 0 "verdict: exact"
  relation none 1 "verdict: equal up to rounding"
  run -0 zs-verify none --allow rounding
  relation bf16 1 "verdict: equal up to rounding"
  [[ $output != *relation:* ]]
}

# The other faults and weights: lib/evidence/rollout/{cause,answer,weights}_test.cpp.
@test "rollout: a fault is printed with its relation and place" {
  relation stale 1 "relation: the generator's weights are stale by a fixed number of steps"
  says "where: step 1, sample 12"
  relation embeddings 1 "relation: no simple relation"
}

@test "rollout: each system's dump is read, and its metric has its name" {
  dump nemo none nemo
  run -1 zs-verify nemo
  says "verdict: equal up to rounding"
  says "NeMo-RL gen_kl_error: "
  says "768 tokens of 48 sequences in 4 steps"
  dump nemo shift shifted
  run -1 zs-verify shifted
  says "relation: shift by +1"
  says "where: step 0, sample 0, token"
  run -1 zs-verify nemo/train_data_step2.jsonl
  says "192 tokens of 12 sequences in 1 step"
  dump slime stale slime
  run -1 zs-verify slime/rollout_data slime/train_data
  says "relation: the generator's weights are stale"
  says "slime train_rollout_logprob_abs_diff: "
  dump skyrl padding skyrl
  run -1 zs-verify skyrl
  says "768 tokens"
  says "SkyRL policy/rollout_train_logprobs_abs_diff_mean: "
}

@test "rollout: a dump of one side is joined with the other's, or says what is missing" {
  dump prime none prime
  run -2 --separate-stderr zs-verify prime
  [[ "$stderr" == *"holds no log-probabilities of the trainer: prime-rl dumps the generator alone"* ]]
  dump torchtitan none torchtitan
  run -2 --separate-stderr zs-verify torchtitan
  [[ "$stderr" == *"record the trainer with zs_probe"* ]]
  dump trainer none trainer
  run -1 zs-verify trainer torchtitan
  says "768 tokens of 48 sequences in 4 steps"
  run -1 zs-verify prime trainer
  says "768 tokens of 48 sequences"
  dump generator none generator
  run -1 zs-verify generator trainer
  says "verdict: equal up to rounding"
  run -2 --separate-stderr zs-verify generator torchtitan
  [[ "$stderr" == *"the generator's log-probabilities alone"* ]]
}

@test "rollout: zs-verify names the place of other token ids first" {
  dump trainer none trainer
  dump generator none generator template
  run -1 zs-verify trainer generator
  says "verdict: DIFFERENT"
  says "the token ids differ: another template or tokenizer"
  says "where: step 0, sample 0: token 2 of the prompt is [0-9]* for the trainer and 1 for the generator"
}

@test "rollout: a sequence without a partner is not exact" {
  dump trainer exact trainer
  dump generator exact generator
  run -0 zs-verify trainer generator
  says "verdict: exact"
  sed -i '$d' generator/rollout-0.jsonl
  run -3 zs-verify trainer generator
  says "verdict: inconclusive"
  says "sample 47 is only in the trainer's"
}

@test "rollout: masks of two dumps that differ are not equal" {
  cat >masks.py <<'END'
import zs_probe
for folder, side, mask in ("t", "train", [1, 1]), ("g", "gen", [1, 1]), ("less", "gen", [1, 0]), ("fewer", "train", [1, 0]):
    zs_probe.Rollouts(folder, "mine", "F32", "F32").add(0, [5, 6, 7], 1, mask=mask, **{side: [-1.0, -2.0]})
END
  PYTHONPATH=$ROOT/share/probe python3 masks.py
  run -0 zs-verify t g
  run -1 zs-verify t less
  says "reason: the masks differ: the trainer counts 1 token that the generator leaves out"
  says "the first: step 0, sample 0, token 7 at position 1"
  run -3 zs-verify fewer g
  says "reason: the masks differ, which may be meant: the trainer leaves out 1 token that the generator counts"
}

@test "rollout: --floor measures the bound, and gates" {
  dump zs none healthy
  dump zs bf16 rough
  sed -i 's/"BF16"/""/; s/"trainer_dtype": "F32"/"trainer_dtype": ""/' rough/rollout-0.jsonl
  run -0 zs-verify rough --allow rounding
  run -1 zs-verify rough --floor healthy --allow rounding
  says "verdict: DIFFERENT"
  says "measured in healthy"
}

@test "rollout: the trainer's own rounding, scored again, is the bound" {
  relation rough 1 "verdict: DIFFERENT"
  relation again 1 "verdict: equal up to rounding"
  says "three times the rounding of the trainer, scored again"
}

# grow FAULT: live/ grows by a step at a time, and has no end where the fault is not none
grow() {
  dump zs "$1" whole
  mkdir live
  head -n 1 whole/rollout-0.jsonl >live/rollout-0.jsonl
  for step in 0 1 2 3; do
    grep "\"step\": $step," whole/rollout-0.jsonl >>live/rollout-0.jsonl
    sleep 0.5
  done
  [ "$1" != none ] || echo '{"zs_rollout": 1, "end": true}' >>live/rollout-0.jsonl
}

@test "rollout: --follow ends at the first wrong step, or with the training" {
  grow stale 3>&- &
  run -1 timeout "$HANG" zs-verify --follow live
  says "verdict: DIFFERENT"
  says "where: step 1"
  wait
  rm -r whole live
  grow none 3>&- &
  run -0 timeout "$HANG" zs-verify --follow live --allow rounding
  says "verdict: equal up to rounding"
  says "in 4 steps"
  wait
}

@test "rollout: a report shows steps, positions and versions" {
  dump zs stale stale
  run -1 zs-report stale -o stale.html --figures svg
  grep -q "stale by a fixed number of steps" stale.html
  for figure in "Distance at each step" "Distance by position" "Versions at each step"; do grep -q "$figure" stale.html; done
  dump zs exact exact
  run -0 zs-report exact -o exact.html
  grep -Eq '<span class="n">[0-9.]+e-[0-9]+</span>' exact.html # no line end behind its hyphen
  run -0 zs-report exact -o exact.md
  grep -q "The generator is the model that is trained" exact.md
}

@test "rollout: JSON has the lines as members" {
  dump zs shift shift
  run -1 zs-verify shift --format json
  [ "$(jq -r .verdict <<<"$output")" = DIFFERENT ]
  [[ "$(jq -r .relation <<<"$output")" == "shift by +1"* ]]
}

@test "rollout: text alone says how to switch numbers on" {
  echo '{"input": "a", "output": "b", "gts": "c", "score": 1.0, "step": 3}' >3.jsonl
  echo '{"input": "a", "output": "b", "gts": "c", "score": 1.0, "step": 4}' >4.jsonl
  run -2 --separate-stderr zs-verify 3.jsonl 4.jsonl
  [[ "$stderr" == *"is verl's dump of text"*"calculate_log_probs"* ]]
}

# synced FAULT STATUS TEXT: the weights of both sides, as tests/synced.py has recorded them
synced() {
  run -"$2" zs-verify "$1/trainer" "$1/generator"
  says "$3"
}

@test "rollout: weights of a sync: what was delivered, and how what was not differs" {
  warm_python
  "$PYTHON" "$BATS_TEST_DIRNAME/synced.py" . none fused shards cast quantised transposed rows interleaved columns row qkv ahead \
    adapter merged ranks
  synced none 0 "verdict: exact"
  says "delivered: 0: 9 of 9, 1: 9 of 9"
  synced fused 0 "verdict: exact"
  synced shards 1 "verdict: equal up to rounding"
  synced cast 1 "rounded to BF16"
  synced quantised 3 "may be quantised to FP8"
  synced transposed 1 "relation: transposed: model.layers.0.self_attn.o_proj.weight"
  synced rows 1 "relation: its rows are in another order: model.layers.0.mlp.down_proj.weight"
  synced interleaved 1 "relation: rows of gate_proj, up_proj are exchanged"
  synced columns 1 "relation: a part of it has the bits of version 0: model.layers.0.self_attn.o_proj.weight (about [67]. % of what has moved since)$"
  synced row 1 "relation: a part of it matches no version: model.embed_tokens.weight (rows 5 to 9 of 40)$"
  synced qkv 1 "relation: never delivered: bits of version 0: model.layers.0.self_attn.k_proj.weight, model.layers.0.self_attn.v_proj.weight$"
  synced ahead 3 "not compared: version 3 is only in the trainer's"
  synced adapter 0 "verdict: exact"
  synced merged 1 "relation: the trainer's own base has moved under its adapter, as merging and unmerging in BF16 does: layer.weight"
  synced ranks 1 "ranks hold different bytes"
  [[ $output != *also:* ]]
}

@test "rollout: what zs_probe.Rollouts writes is read" {
  PYTHONPATH=$ROOT/share/probe python3 - <<'END'
import zs_probe
log = zs_probe.Rollouts("both", "mine", "F32", "F32")
log.add(3, [5, 6, 7, 8], 2, gen=[-1.0, -2.5], train=[-1.0, -2.5], sample="a", version=3)
try:
    log.add(3, [5, 6, 7, 8], 2, gen=[-1.0])
except ValueError as error:
    print(error)
END
  run -0 zs-verify both
  says "verdict: exact"
  says "compared: 2 tokens of 1 sequence in 1 step"
}

@test "rollout: a training that fails before its first update is not equal" {
  cat >fails.py <<'END'
import zs_probe
zs_probe.Rollouts("rl/rollout", "mine", "F32", "F32").add(0, [5, 6, 7], 1, gen=[-1.0, -2.0], train=[-1.0, -2.0])
raise ValueError("before its first update")
END
  PYTHONPATH=$ROOT/share/probe run -1 python3 fails.py
  run -3 zs-verify --allow rounding rl
  says "verdict: inconclusive"
  says "failure: .*rollout-0.jsonl says how the training ended: exception ValueError: before its first update"
}

@test "rollout: verl's batches are recorded where it compares both sides" {
  warm_python
  mkdir -p verl/utils/debug
  touch verl/__init__.py verl/utils/__init__.py verl/utils/debug/__init__.py
  echo 'def calculate_debug_metrics(data): return {"valid": 1}' >verl/utils/debug/metrics.py
  cat >main.py <<'END'
import types
import torch
from verl.utils.debug.metrics import calculate_debug_metrics
# the prompts are padded on the left, the answers on the right
ids = torch.tensor([[0, 7, 8, 3, 4, 5], [6, 7, 8, 3, 4, 0]])
mask = torch.tensor([[0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0]])
gen = torch.tensor([[-1.0, -2.0, -3.0], [-1.5, -2.5, 0.0]])
batch = {"input_ids": ids, "attention_mask": mask, "responses": ids[:, 3:], "response_mask": mask[:, 3:], "rollout_log_probs": gen, "old_log_probs": gen.clone()}
assert calculate_debug_metrics(types.SimpleNamespace(batch=batch, meta_info={"global_steps": 4, "temperature": 1.0})) == {"valid": 1}
END
  ZS_PROBE=rl PYTHONPATH=.:$ROOT/share/probe "$PYTHON" -m zs_probe main.py
  run -0 zs-verify rl/rollout
  says "verdict: exact"
  says "compared: 5 tokens of 2 sequences in 1 step"
  says "verl training/rollout_probs_diff_mean: 0"
}

@test "rollout: OpenRLHF's experience is recorded when both sides have scored it" {
  warm_python
  mkdir -p openrlhf/trainer/ppo_utils
  touch openrlhf/__init__.py openrlhf/trainer/__init__.py openrlhf/trainer/ppo_utils/__init__.py
  cat >openrlhf/trainer/ppo_utils/experience_maker.py <<'END'
class RemoteExperienceMaker:
    def make_experience(self, samples_list):
        for one in samples_list:
            one.action_log_probs = one.rollout_log_probs.clone()
        return samples_list
END
  cat >main.py <<'END'
import types
import torch
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker
# padded on the right; masks and log-probabilities begin with the second token
one = types.SimpleNamespace(
    sequences=torch.tensor([[7, 8, 3, 4, 5], [6, 8, 9, 4, 0]]), attention_mask=torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]]),
    action_mask=torch.tensor([[0, 1, 1, 1], [0, 0, 1, 0]]), rollout_log_probs=torch.tensor([[0.0, -1.0, -2.0, -3.0], [0.0, 0.0, -4.0, 0.0]]))
maker = RemoteExperienceMaker()
maker.strategy = types.SimpleNamespace(args=types.SimpleNamespace(rollout=types.SimpleNamespace(temperature=0.7)))
assert maker.make_experience([one]) == [one]
END
  ZS_PROBE=rl PYTHONPATH=.:$ROOT/share/probe "$PYTHON" -m zs_probe main.py
  run -0 zs-verify rl/rollout
  says "verdict: exact"
  says "compared: 4 tokens of 2 sequences in 1 step"
  jq -se 'map(select(.n == 1))[0] | .ids == [6, 8, 9, 4] and .prompt == 3 and .temperature == 0.7' rl/rollout/rollout-0.jsonl
}

# generates ALGORITHM FAULT STATUS TEXT: a training of TRL, attached without a change, and what is said of it
generates() {
  ZS_PROBE=$1-$2 PYTHONPATH=$ROOT/share/probe:${PYTHONPATH:-} HF_HUB_OFFLINE=1 "$PYTHON" -m zs_probe "$BATS_TEST_DIRNAME/generates.py" "$1" "$2" >log 2>&1 ||
    { tail -5 log; return 1; }
  run -"$3" zs-verify "$1-$2/rollout"
  says "$4"
}

@test "rollout: TRL's trainers are attached without a change" {
  python_with torch python3-torch
  "$PYTHON" -c "import trl, datasets" 2>/dev/null || skip "needs TRL: pip install trl, and name its Python in ZS_TORCH_PYTHON"
  generates grpo none 1 "verdict: equal up to rounding"
  grep -q "rollout/logp_diff_mean" log
  run -0 zs-parse log -o -
  says "rollout/logp_diff_max"
  run -0 zs-verify grpo-none
  says "verdict: consistent"
  says "rollout: equal up to rounding"
  generates rloo none 1 "verdict: equal up to rounding"
  generates grpo temperature 1 "relation: temperature 0.7 on the generator's side alone"
  run -1 zs-verify grpo-temperature
  says "verdict: INCONSISTENT"
  says "headline: generator and trainer differ: temperature 0.7 on the generator's side alone"
  generates grpo never 1 "relation: the generator equals the trainer's score with the weights of the first step"
  generates grpo mask 1 "relation: the generator equals the trainer's score with no attention mask"
  generates grpo rotary 1 "relation: the generator equals the trainer's score with a rotary base of 20000"
}
