# SPDX-License-Identifier: Apache-2.0
# Trainings of PyTorch under share/probe/zs_probe: recorded by tests/peers/probe.py, compared by zs-verify.
setup_file() { load helper && warm_up; }
teardown_file() { cool_down; }

setup() {
  bats_load_library bats-support
  bats_load_library bats-assert
  load helper
  cd "$BATS_TEST_TMPDIR"
  cp -r "$ROOT/tests/data/probe" .
  cd probe
}

@test "the same training has the same bits; a probe is not compared with itself, nor with its copy" {
  recorded_again plain again
  run -0 zs-verify plain again
  assert_line "verdict: exact"
  assert_line "tensors_compared: 64"
  assert_line --partial "layout_a: plain, 1 rank"
  assert_line --partial "layouts: the same on both sides"
  run -2 zs-verify plain plain
  cp -r plain copy
  run -1 zs-verify plain copy
  assert_line "verdict: FAILED"
  assert_line --partial "one is a copy of the other"
}

@test "FSDP2 on two ranks is equal to plain PyTorch up to rounding, which --allow or a tolerance accepts" {
  run -1 zs-verify plain fsdp
  assert_line "verdict: equal up to rounding"
  assert_line --partial "kind: rounding: the largest distance is 0."
  assert_line "ranks_b: 2"
  assert_line --partial "layout_a: plain, 1 rank"
  assert_line --partial "layout_b: FSDP2, 2 ranks"
  refute_line --partial "layouts: "
  assert_line "tensors_differing: 54" # the others are equal, joined over ranks
  run -0 zs-verify --allow rounding plain fsdp
  assert_line "verdict: equal up to rounding"
  run -1 zs-verify --allow rounding plain fault
  run -2 zs-verify --allow all plain fsdp
  run -2 zs-verify --allow rounding --iterations 1
  run -1 zs-verify --rtol 1e-9 plain fsdp
  run -0 zs-verify --rtol 1e-3 --atol 1e-5 plain fsdp
  assert_line "verdict: within tolerance"
  rm fsdp/step-*.rank-* plain/step-*
  run -0 zs-verify --allow rounding plain fsdp # sketches need no values
  run -3 zs-verify --rtol 1e-3 --atol 1e-5 plain fsdp
  assert_output --partial "no values were kept"
}

@test "zs-verify finds a gradient with the opposite sign and the same norm" {
  recorded_again plain other
  python3 - other/rank-0.jsonl <<'END'
import base64, json, struct, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
row = next(t for t in lines[3]["tensors"] if t["name"] == "grad/0.weight")
numbers = struct.unpack(f"<{8 * 2}d", base64.b64decode(row["sketch"]))
row["sketch"] = base64.b64encode(struct.pack("<16d", *[-number for number in numbers])).decode()
row["digest"] = "0123456789abcdef"
open(sys.argv[1], "w").writelines(json.dumps(line) + "\n" for line in lines)
END
  run -1 zs-verify plain other
  assert_line "verdict: DIFFERENT"
  assert_line "headline: step 2: gradient of 0.weight: x -1"
}

@test "a tolerance is headed by the first value beyond it, not by one within" {
  run -1 zs-verify --rtol 1e-4 --atol 1e-6 fsdp fault
  assert_line "verdict: DIFFERENT"
  assert_line "step: 3"
  assert_line "what: gradient"
  run -1 zs-verify fsdp fault # nor, without one, by what rounding leaves
  assert_line "step: 3"
  assert_line "place: [0, 0]"
}

@test "zs-verify names step, tensor and element of a fault, which is more than rounding" {
  run -1 zs-verify plain fault
  assert_line "step: 3"
  assert_line "what: gradient"
  assert_line "parameter: 0.weight"
  assert_line "place: [0, 0]"
  assert_line --partial "kind: more than rounding: step 3, grad/0.weight"
}

@test "ranks that hold other values, a part that is missing, a cut and a damaged file are said" {
  sed -i '3s/"name": "grad\/0.bias", "dtype": "F32", "of": 7, "shape": \[7\]/"name": "grad\/0.bias", "dtype": "F32", "of": 8, "shape": [8]/' plain/rank-0.jsonl
  run -1 zs-verify plain fault
  assert_output --partial "step 1: of grad/0.bias 7 of 8 elements are there"
  recorded_again fsdp half
  head -n 4 fsdp/rank-1.jsonl >half/rank-1.jsonl # killed, or a full disk
  sed -i '1s/"id": "[0-9a-f]*"/"id": "x"/' half/rank-1.jsonl
  printf '{"step": 3, "los' >>half/rank-1.jsonl
  run -1 zs-verify fsdp half
  assert_line "verdict: FAILED"
  assert_line --partial "half/rank-1.jsonl:5: is cut"
  assert_line --partial "half/rank-1.jsonl: lacks step 3, which is in half/rank-0.jsonl:5"
  assert_line "steps_compared: 2"
  rm half/rank-1.jsonl
  run -2 zs-verify fsdp half
  assert_output --partial "half/rank-1.jsonl: is not there, and rank-0.jsonl is of 2 ranks: copy the files of all nodes into one folder"
  sed -i '2s/digest": "./digest": "g/' fault/rank-0.jsonl
  run -2 zs-verify plain fault
  assert_output --partial "fault/rank-0.jsonl:2: "
  local size
  for ((size = 0; size < 2500; size += 211)); do
    head -c "$size" "$ROOT/tests/data/probe/plain/rank-0.jsonl" >fault/rank-0.jsonl
    run zs-verify plain fault
    ((status == 1 || status == 2)) || complain "$size bytes: status $status: $output"
  done
  verdict
}

@test "what one probe lacks is missed: gradients, losses, a step, an end; what is nowhere finite fails" {
  for folder in bare silent gap open nan; do recorded_again plain $folder; done
  perl -pi -e 's/\{"name": "grad[^}]*\}, //g' bare/rank-0.jsonl
  run -3 zs-verify plain bare
  assert_line "verdict: inconclusive"
  assert_line --partial "missing: step 1: grad/0.bias is only in A; step 1: grad/0.weight is only in A"
  sed -i 's/"loss": [0-9.]*/"loss": null/' silent/rank-0.jsonl
  run -3 zs-verify plain silent
  assert_line --partial "missing: step 1: loss of rank 0 is only in A"
  sed -i 4d gap/rank-0.jsonl
  run -1 zs-verify plain gap
  assert_output --partial "gap/rank-0.jsonl: has 3 steps of 4 that were written"
  sed -i '$d' open/rank-0.jsonl
  run -1 zs-verify plain open
  assert_output --partial "open/rank-0.jsonl:6: is the last line, and no end"
  sed -i 's/"loss": [0-9.]*/"loss": "nan"/' nan/rank-0.jsonl
  recorded_again nan nan-too
  run -1 zs-verify nan nan-too
  assert_line "verdict: FAILED"
  assert_line --partial "failure: step 1: loss of rank 0 is nan and nan"
}

@test "a probe of every second step is compared with one of every step, where both strides explain it" {
  recorded_again plain second
  sed -i '/"step": 3/d; s/"every": 1, "since": 0, "lines": 4/"every": 2, "since": 0, "lines": 3/' second/rank-0.jsonl
  run -0 zs-verify plain second
  assert_line "steps_compared: 3"
  assert_line "steps_alone: 1"
  sed -i 's/"every": 2/"every": 1/' second/rank-0.jsonl
  run -1 zs-verify plain second
  assert_output --partial "second/rank-0.jsonl: lacks step 3, where step 1 and each multiple of 1 up to 4 is recorded"
}

@test "several probes of one training: each beside the first, and the first step and operation that does not repeat" {
  recorded_again plain again
  recorded_again plain third
  run -0 zs-verify plain again third
  assert_line "each_with_first: again exact; third exact"
  run -1 zs-verify plain again fault
  assert_line "compared: plain with fault"
  assert_line "each_with_first: again exact; fault DIFFERENT"
  assert_line "step: 3"
  assert_line "stage: backward, or the reduction of gradients"
  run -2 zs-verify plain again plain
  assert_output --partial "plain and plain are the same"
  run -2 zs-verify --repeat 2 plain again
  assert_output --partial "compared by its names: zs-verify A B C"
}

@test "a loss alone that differs is a difference" {
  recorded_again plain other
  sed -i '5s/"loss": [0-9.]*/"loss": 1.25/' other/rank-0.jsonl
  run -1 zs-verify plain other
  assert_line "verdict: DIFFERENT"
  assert_line --partial "loss: step 3, rank 0: "
  assert_line "tensors_differing: 0"
}

@test "replicas that differ from one another are a failure, also where the first ones agree" {
  for folder in a b; do
    mkdir $folder
    for rank in 0 1; do # as DDP leaves them
      sed "1s/\"id\": \"[0-9a-f]*\"/\"id\": \"$folder$rank\"/; 1s/\"rank\": 0, \"world_size\": 1/\"rank\": $rank, \"world_size\": 2/; \$s/\"rank\": 0/\"rank\": $rank/" plain/rank-0.jsonl >$folder/rank-$rank.jsonl
    done
    sed -i '4s/\("name": "param\/0.bias"[^}]*"digest": "\)../\1zz/; 4s/"digest": "zz/"digest": "00/' $folder/rank-1.jsonl
    cmp -s <(sed -n 4p plain/rank-0.jsonl) <(sed -n 4p $folder/rank-1.jsonl) && complain "no digest was changed"
  done
  run -1 zs-verify a b
  assert_output --partial "param/0.bias differs between rank 0 and rank 1"
  verdict
}

@test "sketches say which relation holds: micro-batches that are missing, by name, against the whole training" {
  run -1 zs-verify whole lost
  assert_line "headline: step 1: gradient of 0.weight and 3 more of 4: only the last of 4 micro-batches counts"
  assert_line "parameter: 0.weight"
  assert_line --partial "times the bound of rounding"
}

@test "a training on two ranks under FSDP2, its batch cut otherwise, is equal up to rounding, and one whose digests alone differ is not exact" {
  run -1 zs-verify whole sharded
  assert_line "verdict: equal up to rounding"
  assert_line --partial "layout_b: FSDP2, 2 ranks"
  run -0 zs-verify --allow rounding whole sharded
  assert_line --regexp "^kind: rounding: the largest distance is 0\.[0-9]+ of its bound"
  cp -r whole copy
  run -1 zs-verify whole copy
  assert_line --partial "one is a copy of the other"
  cp -r whole other
  sed -i '1s/"id": "../"id": "zz/;3s/"digest": "./"digest": "0/g' other/rank-0.jsonl
  run -1 zs-verify whole other
  assert_line "verdict: equal up to rounding"
  cp -r whole again
  sed -i '1s/"id": "../"id": "zz/' again/rank-0.jsonl
  run -0 zs-verify whole again
  assert_line "verdict: exact"
}

@test "a module that all names of one side begin with is left out" {
  cp -r whole net
  sed -i '1s/"id": "../"id": "zz/;s/"name": "\([a-z_.]*\/\)\{0,1\}\([0-9]\)/"name": "\1net.\2/g;s/"\([0-9]\.\(weight\|bias\)\)"/"net.\1"/g' net/rank-0.jsonl
  grep -q '"name": "grad/net.0.weight"' net/rank-0.jsonl
  run -0 zs-verify whole net
  assert_line "verdict: exact"
}

@test "zs-verify names a rate, a missing part and a missing step of probes with sketches" {
  cp -r whole rate
  sed -i '1s/"id": "../"id": "zz/' rate/rank-0.jsonl
  sed -i '4s/"lr": 0.01/"lr": 0.001/' rate/rank-0.jsonl
  run -1 zs-verify whole rate
  assert_line "headline: step 2: the learning rate of group 0 is 0.001 instead of 0.01, x 1/10"
  cp -r whole short
  sed -i '1s/"id": "../"id": "zz/' short/rank-0.jsonl
  sed -i '$d' short/rank-0.jsonl
  sed -i '$d' short/rank-0.jsonl
  run -1 zs-verify whole short
  assert_line "verdict: FAILED"
  assert_line --partial "short/rank-0.jsonl:4: is the last line, and no end"
  assert_line --partial "missing: step 3: the step is only in A"
  cp -r sharded half
  sed -i '3s/"digest"/"digits"/' half/rank-1.jsonl
  run -2 zs-verify whole half
  assert_output --partial "half/rank-1.jsonl:3: lacks 'digest'"
  rm half/rank-1.jsonl
  run -2 zs-verify whole half
  assert_output --partial "half/rank-1.jsonl: is not there, and rank-0.jsonl is of 2 ranks: copy the files of all nodes into one folder"
}

@test "zs_probe records a training as it is, where PyTorch is here: its steps, accumulation, rate and loss; nothing goes to stdout" {
  python_with torch python3-torch
  cat >train.py <<'END'
import sys, torch
torch.manual_seed(1)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(3):
    for _ in range(2):
        (model(torch.randn(5, 8)).square().mean() / 2).backward()
    if "twice" in sys.argv and step == 1:
        model.weight.grad.mul_(2)
    optimizer.step()
    optimizer.zero_grad()
END
  export PYTHONPATH=$ROOT/share/probe
  ZS_PROBE=one run -0 "$PYTHON" -m zs_probe train.py
  [ -z "$output" ]
  warm_python
  ZS_PROBE=two run -0 "$PYTHON" -m zs_probe train.py
  ZS_PROBE=other run -0 "$PYTHON" -m zs_probe train.py twice
  run -0 zs-verify one two
  assert_line "verdict: exact"
  assert_line "steps_compared: 3"
  run -1 zs-verify one other
  assert_line "headline: step 2: gradient of weight: x 2"
  ZS_PROBE=kept ZS_PROBE_VALUES=2 run -0 "$PYTHON" -m zs_probe train.py # values are kept where they are asked for
  ZS_PROBE=kept-other ZS_PROBE_VALUES=2 run -0 "$PYTHON" -m zs_probe train.py twice
  [ -z "$output" ]
  run -1 zs-verify kept kept-other
  assert_line --regexp '^place: \[0, 0\]$'
  assert_line --regexp '^value_b: '
  ZS_PROBE=launched run -0 "$PYTHON" -m zs_probe --local_rank=0 train.py twice # as deepspeed --module calls it
  [ -z "$output" ]
  run -1 zs-verify one launched
  assert_line "headline: step 2: gradient of weight: x 2"
  ZS_PROBE=one run -0 "$PYTHON" -m zs_probe train.py # the folder is taken: said, and the training goes on
  assert_output --partial "one/rank-0.jsonl is there already"
  sed -i 's/(model(torch/(model.forward(torch/' train.py # hooks of the module do not see it
  ZS_PROBE=unseen run -0 "$PYTHON" -m zs_probe train.py
  assert_output --partial "no call of the model was seen"
}

@test "a lost step, an end that is not there and an edit of any field are never equal" {
  edited() { cp -r whole "$1" && sed -i '1s/"id": "../"id": "zz/' "$1/rank-0.jsonl" && sed -i "${@:2}" "$1/rank-0.jsonl"; }
  edited gap 4d # the step that differs may be the one that is lost
  run -1 zs-verify whole gap
  assert_line "verdict: FAILED"
  assert_line --partial "gap/rank-0.jsonl: has 2 steps of 3 that were written"
  run -1 zs-report whole gap
  refute_output --partial "**exact.**"
  edited open '$d'
  run -1 zs-verify whole open
  assert_line --partial "open/rank-0.jsonl:5: is the last line, and no end"
  edited crashed '$s/"how": "whole"/"how": "exception ValueError: boom"/'
  run -1 zs-verify whole crashed
  assert_line --partial "says how the training ended, after 3 steps: exception ValueError: boom"
  edited option '4s/"amsgrad": false/"amsgrad": true/'
  run -1 zs-verify whole option
  assert_line "headline: step 2: amsgrad of group 0 is true instead of false"
  edited counter '4s/"counters": {"2"/"counters": {"3"/'
  run -1 zs-verify whole counter
  assert_line "headline: step 2: the optimizer counts 3 steps for 2"
  edited hidden '$s/"unseen": \[\]/"unseen": ["an optimizer"]/'
  run -3 zs-verify whole hidden
  assert_line "not recorded in B: an optimizer"
  edited loss '4s/"loss": 0[.0-9]*/"loss": 0.7/'
  run -1 zs-verify whole loss
  assert_line --partial "loss: step 2, rank 0: "
  edited silent '4s/"loss": 0[.0-9]*/"loss": null/'
  run -3 zs-verify whole silent
  assert_line "missing: step 2: loss of rank 0 is only in A"
  edited key '4s/"batch"/"batches"/'
  run -2 zs-verify whole key
  cp -r sharded rank && sed -i '1s/"id": "../"id": "zz/' rank/rank-?.jsonl && sed -i '4s/"lr": 0.01/"lr": 0.5/' rank/rank-1.jsonl
  run -1 zs-verify sharded rank
  assert_line --partial "rank 1 updates 0.weight with other options than rank 0"
  cp -r whole extra && cp sharded/rank-1.jsonl extra
  run -2 zs-verify whole extra
  assert_output --partial "extra/rank-1.jsonl: is there, and the training has 1 rank: it is of another"
}

@test "zs_probe records a second optimizer, buffers, a crash, a stride, and a counter that began again" {
  warm_python
  cat >train.py <<'END'
import os, sys, torch
torch.manual_seed(1)
rate, momentum, crash = float(sys.argv[1]), float(sys.argv[2]), "crash" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.BatchNorm1d(6, momentum=momentum), torch.nn.Linear(6, 4))
matrices = torch.optim.SGD([p for p in model.parameters() if p.dim() > 1], lr=0.1)
vectors = torch.optim.AdamW([p for p in model.parameters() if p.dim() < 2], lr=rate)
first = 0
if "again" in sys.argv:
    model.load_state_dict(torch.load("model.pt"))
    first = 3
for step in range(first, first + 3):
    model(torch.randn(5, 8)).square().mean().backward()
    if crash and step == 2:
        raise ValueError("boom")
    matrices.step()
    vectors.step()
    model.zero_grad()
if "late" in sys.argv:
    model[0].weight.data.mul_(2)
torch.save(model.state_dict(), "model.pt")
END
  export PYTHONPATH=$ROOT/share/probe
  recorded() { ZS_PROBE=$1 "$PYTHON" -m zs_probe train.py "${@:2}"; }
  recorded a 0.01 0.1
  recorded b 0.01 0.1
  run -0 zs-verify a b
  assert_line "verdict: exact"
  assert_line "tensors_compared: 66"
  recorded rate 0.02 0.1
  run -1 zs-verify a rate
  assert_line "headline: step 1: the learning rate of group 1 is 0.02 instead of 0.01, x 2"
  recorded buffers 0.01 0.5
  run -1 zs-verify a buffers
  assert_line --partial "buffer of 1.running_mean"
  recorded late 0.01 0.1 late
  run -3 zs-verify a late
  assert_line "not recorded in B: what moved 0.weight after the last step"
  for name in crashed crashed-too; do run -1 recorded $name 0.01 0.1 crash; done
  run -1 zs-verify crashed crashed-too
  assert_line "verdict: FAILED"
  assert_line --partial "after 2 steps: exception ValueError: boom"
  ZS_PROBE_EVERY=2 recorded second 0.01 0.1
  run -0 zs-verify a second
  assert_line "verdict: exact"
  recorded b 0.01 0.1 again # its counter begins again, and its parameters are those of the folder: it goes on there
  assert [ "$(grep -c '"step": ' b/rank-0.jsonl)" = 6 ]
  run recorded b 0.01 0.1 # another one
  assert_output --partial "b/rank-0.jsonl is there already"
  assert [ -e b/rank-0.refused ]
}

@test "zs_probe counts target tokens of each micro-batch: zs-verify names other labels and a mean of means" {
  warm_python
  cat >train.py <<'END'
import sys, torch
torch.manual_seed(1)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = torch.nn.Embedding(11, 8), torch.nn.Linear(8, 11)
    def forward(self, batch, counted=None):
        labels = batch["labels"]
        logits = self.head(self.words(batch["tokens"]).tanh())
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
        return loss / (counted or (labels != -100).sum())
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    tokens = torch.randint(11, (4, 6))
    labels = tokens.roll(-1, 1)
    labels[0, 1:], labels[1, 4:] = -100, -100
    if "more" in sys.argv and step == 1:
        labels[0, 1:3] = 5
    counted = int((labels != -100).sum())
    for half in (slice(0, 2), slice(2, 4)):
        loss = model({"tokens": tokens[half], "labels": labels[half]}, None if "means" in sys.argv else counted)
        (loss / 2 if "means" in sys.argv else loss).backward()
    optimizer.step()
    optimizer.zero_grad()
END
  export PYTHONPATH=$ROOT/share/probe
  for kind in right more means; do ZS_PROBE=$kind run -0 "$PYTHON" -m zs_probe train.py $kind; done
  [ "$(grep -o '"targets": \[[^]]*\]' more/rank-0.jsonl | paste -sd ' ')" = '"targets": [5, 12] "targets": [7, 12] "targets": [5, 12]' ]
  run -1 zs-verify right more
  assert_line "headline: step 2: batch: 1 of 4 samples are missing, 1 samples are others; 19 target tokens for 17, x 1.118: the loss is of other tokens"
  run -1 zs-verify right means
  assert_line "headline: step 1: gradient of words.weight and 2 more of 3: each micro-batch counts alike, whatever its target tokens (5, 12): a mean of means for a mean over all tokens"
  run -1 zs-verify means right
  assert_line --partial "each micro-batch counts by its target tokens (5, 12): a mean over all tokens for a mean of means"
  mkdir shared # on two ranks that share each micro-batch: it counts once
  for rank in 0 1; do sed "1s/\"id\": \"../\"id\": \"zz/; 1s/\"rank\": 0, \"world_size\": 1/\"rank\": $rank, \"world_size\": 2/; \$s/\"rank\": 0/\"rank\": $rank/" right/rank-0.jsonl >shared/rank-$rank.jsonl; done
  run -0 zs-verify right shared
  assert_line "ranks_b: 2"
  refute_line --partial "target tokens"
  cp -r right recounted # the number alone
  sed -i '1s/"id": "../"id": "zz/; 4s/"targets": \[5, 12\]/"targets": [7, 12]/' recounted/rank-0.jsonl
  run -1 zs-verify right recounted
  assert_line "verdict: DIFFERENT"
  assert_line "note: step 2: 19 target tokens for 17, x 1.118: the loss is of other tokens, and no gradient shows it"
  sed -i '4s/"targets": \[7, 12\]/"targets": [7, "x"]/' recounted/rank-0.jsonl
  run -2 zs-verify right recounted
  assert_output --partial "recounted/rank-0.jsonl:4: has \"x\" where a whole number belongs"
}

@test "each way in which the probe reads a tensor gives the same digest and sketch: compiled, and PyTorch's own operations" {
  warm_python
  export XDG_CACHE_HOME=$PWD
  run -0 "$PYTHON" "$ROOT/tests/measures.py"
  assert_output --partial "0 wrong, on cpu, read at once"
  run -0 "$PYTHON" "$ROOT/tests/measures.py" driver
  assert_output --partial "0 wrong, on a driver, read at once"
  CC=false run -0 "$PYTHON" "$ROOT/tests/measures.py" # no compiler: said once
  assert_output --partial "native.c is not compiled"
  assert_line --partial "0 wrong, on cpu, read PyTorch's own operations"
  mkdir wheel && cp -r --parents "$ROOT/share/probe" "$ROOT/tests/measures.py" wheel # as the wheel brings it
  make -s -C "$ROOT" BUILD="$PWD" "$PWD/wheel/libnative.so"
  mv wheel/libnative.so "wheel$ROOT/share/probe/zs_probe"
  CC=false run -0 "$PYTHON" "wheel$ROOT/tests/measures.py"
  assert_line --partial "0 wrong, on cpu, read at once"
  refute_output --partial "is not compiled"
}

@test "outputs of modules are compared by sample, a floor is measured, and a training is followed to its first wrong step" {
  warm_python
  cat >train.py <<'END'
import sys, time, torch
torch.manual_seed(1)
first, second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)
model = torch.nn.Sequential(first, torch.nn.Tanh(), second)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
data, micro = torch.randn(24, 8), int(sys.argv[1])
for step in range(4):
    for x in data[6 * step:6 * step + 6].chunk(micro):
        if sys.argv[2] == "fault" and step == 2:
            handle = first.register_forward_hook(lambda module, given, made: 2 * made)
        (model(x).square().mean() / micro).backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(float(sys.argv[3]))
END
  export PYTHONPATH=$ROOT/share/probe ZS_PROBE_OUTPUTS='1,2'
  for run in 'a 1 none 0' 'b 3 none 0' 'faulty 1 fault 0'; do
    read -r folder micro fault pause <<<"$run"
    ZS_PROBE=$folder run -0 "$PYTHON" -m zs_probe train.py "$micro" "$fault" "$pause"
  done
  ZS_PROBE_PERTURB=1 ZS_PROBE=floor run -0 "$PYTHON" -m zs_probe train.py 1 none 0
  assert_output --partial "ZS_PROBE_PERTURB: 212 elements of the parameters were moved by one unit in the last place"
  run -0 zs-verify --allow rounding a b
  assert_line "outputs_compared: 48"
  run -1 zs-verify a faulty
  assert_line --regexp "^headline: step 3: output of 1 and 1 more of 2: .*, in 6 of 6 samples$"
  assert_line "stage: forward"
  run -0 zs-verify --allow rounding --floor floor a b
  assert_line "floor: floor, over 4 steps"
  run -1 zs-verify --allow rounding --floor floor a faulty
  assert_line --partial "headline: step 3: output of 1"
  run -2 zs-verify --floor b a faulty
  assert_output --partial "b: begins with the parameters of a: record a floor with ZS_PROBE_PERTURB=1"
  run -2 zs-verify --floor floor plain fsdp
  assert_output --partial "floor: has another param/0.weight than plain: a floor is the same training again"
  ZS_PROBE=live "$PYTHON" -m zs_probe train.py 1 fault 2 3>&- &
  run -1 zs-verify --follow --allow rounding a live
  assert_line --partial "headline: step 3: output of 1"
  refute [ -n "$(grep -s '"end"' live/rank-0.jsonl)" ]
  wait
  run -1 zs-verify --follow --allow rounding a live
  run -0 zs-verify --follow --allow rounding a b
  run -2 zs-verify --follow --patience 0.2 a nothing
  assert_output --partial "nothing: nothing is recorded there"
  run -2 zs-verify --follow a b floor
  assert_output --partial "--follow takes the recording of a training that runs"
}
