# SPDX-License-Identifier: Apache-2.0
# Gradients of a training: saved by zs-train, read without LibTorch, drawn and reported. Checkpoints without gradients, or
# with damaged ones.
setup_file() {
  load helper
  warm
  cd "$BATS_FILE_TMPDIR"
  zs-train --model_name tiny --num_layers 2 --seq_length 32 --batch_size 1 --max_steps 12 --save_steps 4 --run_name small >log
  zs-train --model_name tiny --num_layers 1 --seq_length 32 --batch_size 1 --max_steps 2 --save_steps 1 --save_gradients false --run_name without >log
}

setup() {
  load helper
  warm
  cd "$BATS_FILE_TMPDIR"
  id=$(basename "$(dirname saved_models/2*/checkpoint_8)")
  run=saved_models/$id
}

@test "gradients: pictures in each format, and in the terminal, of a run by its name, id and folder" {
  for format in png svg pdf; do zs-plot gradients small -o "g.$format" || complain "$format"; done
  for layer in wte wpe h.0 h.1 ln_f; do grep -q ">$layer<" g.svg || complain "no $layer"; done
  [ "$(head -c 8 g.png | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] || complain "no PNG"
  zs-plot gradients small >name
  LC_ALL=C zs-plot gradients small >ascii
  LC_ALL=C grep -n '[^ -~]' ascii && complain "not ASCII"
  for text in name ascii; do
    [ "$(wc -L <$text)" -le 80 ] && [ "$(wc -l <$text)" -le 24 ] || complain "$text: $(wc -L <$text) x $(wc -l <$text)"
  done
  zs-plot gradients "${id%?}" --registry saved_models | cmp - name || complain "by the beginning of its id"
  (cd / && ZS_REGISTRY=$OLDPWD/saved_models zs-plot gradients "$id") | cmp - name || complain "by its id elsewhere"
  zs-plot gradients "$run" | tail -n +2 | cmp - <(tail -n +2 name) || complain "by its folder"
  zs-plot gradients "$run/checkpoint_4" "$run/checkpoint_8" "$run/final_checkpoint/gradients.pt" | tail -n +2 | cmp - <(tail -n +2 name) || complain "by its checkpoints"
  verdict
}

@test "gradients: a report begins with the verdict, and its norm is the one that was logged" {
  run -0 zs-report --gradients small -o report.md
  [ "$(sed -n 3p report.md)" = "**Sound.** **Every layer has a finite gradient, and none is zero, vanishes or explodes**, at each of 3 checkpoints (step 4 to 12)." ]
  grep -q '^- The norm of all layers together equals the norm that the training logged, at 3 checkpoints\.$' report.md || complain "not the logged norm"
  for picture in gradients.png gradient_cosine.png; do [ -s $picture ] || complain "$picture"; done
  zs-report --gradients small -o report.html
  grep -qE '<svg [^>]*class="figure narrow"' report.html || complain "no figure"
  verdict
}

@test "gradients: a layer that explodes, vanishes, is zero or not finite is a no, with status 1" {
  /usr/bin/python3 -c 'import torch' 2>/dev/null || no_package python3-torch
  /usr/bin/python3 - <<'END'
import os, torch
def save(step, **scales):
    gradients = {f"h.{i}.w": torch.full((4,), 0.5) * scales.get(f"h{i}", 1) for i in range(5)}
    os.makedirs(f"made/checkpoint_{step}", exist_ok=True)
    torch.save(gradients, f"made/checkpoint_{step}/gradients.pt")
save(1)
save(2, h0=1e-4, h1=1e4, h2=0)
save(3, h3=float("nan"))
END
  run -1 zs-report --gradients made
  [ "${lines[1]}" = "**Unsound.** **4 of 5 layers have gradients that are not sound:** not finite: \`h.3\` (h.3: at step 3 4 of its 4 values are not finite (4 nan, 0 inf)); exploding: \`h.1\` (h.1: at step 2 its RMS is 10000 times the median of all layers); vanishing: \`h.0\` (h.0: at step 2 its RMS is 1/10000 of the median of all layers); zero: \`h.2\` (h.2: at step 2 all its 4 values are 0)." ]
  run -0 zs-report --gradients made/checkpoint_1
  run -0 zs-plot gradients made
  [[ $output == *"4 nan"* ]]
}

@test "gradients: what Python computes from the same files" {
  /usr/bin/python3 -c 'import torch, numpy' 2>/dev/null || no_package python3-torch
  zs-report --gradients small -o report.md
  /usr/bin/python3 - "$run" report.md <<'END'
import math, re, sys
import numpy, torch
folder, report = sys.argv[1:]
now, then = (torch.load(f"{folder}/{c}/gradients.pt", weights_only=True) for c in ("final_checkpoint", "checkpoint_8"))
flat = lambda tensors: numpy.concatenate([t.numpy().ravel().astype("f8") for t in tensors])
rows = {}
for line in open(report):
    cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
    if len(cells) >= 9: rows.setdefault(cells[0], cells)
def check(cells, a, b):  # norm, RMS, ..., variance, largest; cosine
    name, values = cells[0], [float(c.rstrip(" %")) for c in cells[2:4] + cells[-5:-3]]
    expected = [numpy.linalg.norm(a), math.sqrt((a * a).mean()), a.var(), abs(a).max()]
    for value, want in zip(values, expected):
        assert abs(value - want) <= 6e-4 * want, (name, cells, expected)
    cosine = a @ b / numpy.linalg.norm(a) / numpy.linalg.norm(b)
    assert abs(float(cells[-1]) - cosine) <= 6e-3 * abs(cosine), (name, cells, cosine)
for name in now: check(rows[name], flat([now[name]]), flat([then[name]]))
layers = {"wte": "transformer.wte.", "h.0": "transformer.h.0.", "h.1": "transformer.h.1.", "ln_f": "transformer.ln_f."}
for layer, prefix in layers.items():
    cells = rows[layer][:4] + rows[layer][5:-1]  # without the median and the verdict: the columns of a tensor
    check(cells, *(flat([t for n, t in d.items() if n.startswith(prefix)]) for d in (now, then)))
print(len(now), "tensors and", len(layers), "layers agree")
END
}

@test "gradients: checkpoints without them, damaged ones and other models are located errors" {
  check() { # MESSAGE COMMAND...
    local message=$1
    shift
    run -2 --separate-stderr "$@"
    [[ -z $output && $stderr == "$message" ]] || complain "$*: $stderr"
  }
  other=$(dirname saved_models/*/checkpoint_1)
  none="has no gradients.pt: it was saved with --save_gradients false, or on a signal by a zs-train that did not save them then"
  check "zs-plot: $other/final_checkpoint: $none; so has no other checkpoint" zs-plot gradients without
  check "zs-report: $other/checkpoint_1: $none" zs-report --gradients "$other/checkpoint_1/"
  check "zs-plot: no run 'smal', did you mean 'small'?" zs-plot gradients smal
  check "zs-report: no/such: No such file or directory" zs-report --gradients no/such
  check "zs-plot: gradients needs an operand: a run or checkpoints (see zs-plot --help)" zs-plot gradients
  check "zs-report: --gradients needs no summary: leave out 'summary.h5' (see zs-report --help)" zs-report summary.h5 --gradients small
  cp -r "$run/checkpoint_4" broken
  truncate -s -1000 broken/gradients.pt
  check "zs-plot: broken/gradients.pt: damaged zip archive: no end record, the file may be cut short" zs-plot gradients broken
  cp "$run/checkpoint_4/gradients.pt" broken/
  printf '\x55' | dd of=broken/gradients.pt bs=1 seek=200000 conv=notrunc status=none
  check "zs-plot: broken/gradients.pt: archive/data/1: checksum mismatch, the file is damaged" zs-plot gradients broken
  zs-train --model_name tiny --num_layers 1 --seq_length 32 --batch_size 1 --max_steps 1 --save_steps 1 --output_dir third >log
  check "zs-plot: $(echo third/2*)/final_checkpoint/gradients.pt: has no transformer.h.1.ln_1.weight, unlike $run/checkpoint_4/gradients.pt: they are of different models" zs-plot gradients "$run/checkpoint_4" "$(echo third/2*)/final_checkpoint"
  verdict
}

@test "gradients: a checkpoint of a run that has none is left out, and said to be" {
  cp -r "$run" partly
  rm partly/checkpoint_4/gradients.pt
  run -0 zs-plot gradients partly
  [[ $output == *"1 checkpoint without gradients left out"* ]]
  zs-report --gradients partly -o partly.md
  grep -qF -- '- `partly/checkpoint_4`' partly.md
}

@test "gradients: by tensor, only those named, and as numbers for programs" {
  local weight=transformer.h.0.mlp.c_fc.weight
  zs-plot gradients small --by tensor -o t.svg
  # In the bars and in the map beside its twin of the other block, whole in both; and nothing is called a layer.
  [ "$(grep -c ">$weight<" t.svg)" = 2 ] || complain "$(grep -c ">$weight<" t.svg) times the tensor"
  grep -q '>L2 norm of the gradient of a tensor<' t.svg || complain "no axis of tensors"
  if grep '>[^<]*layer' t.svg; then complain "a layer"; fi
  run -0 --separate-stderr zs-plot gradients small --only h.1 wte
  [[ $output == *h.1* && $output != *h.0* && -z $stderr ]] || complain "$output $stderr"
  run -0 --separate-stderr zs-plot gradients small --only $weight nothing.weight
  [[ $stderr == "zs-plot: warning: no checkpoint has 'nothing.weight': it is drawn as 0" ]] || complain "$stderr"
  [[ $output == *"nothing.weight: in no checkpoint, taken as 0"* ]] || complain "$output"
  zs-report --gradients small -o g.tsv
  zs-report --gradients small -o g.json
  # The same norm in both, three checkpoints of it, and the norm of the whole from those of the tensors.
  awk -F '\t' -v name=$weight '$3 == "tensor" && $4 == name { print $6 }' g.tsv >norms
  [ "$(wc -l <norms)" -eq 3 ] || complain "$(cat norms)"
  diff norms <(jq --arg name $weight '.checkpoints[].tensors[] | select(.name == $name) | .norm' g.json) || complain "norms differ"
  [ "$(awk -F '\t' '$3 == "tensor" && $1 == 12 { sum += $6 * $6 } $3 == "whole" && $1 == 12 { whole = $6 } END { ratio = sqrt(sum) / whole; print (ratio > 0.999999 && ratio < 1.000001) }' g.tsv)" = 1 ] || complain "whole"
  run -2 zs-report "$run/metrics.h5" -f tsv
  [[ $output == *"only --gradients are written as TSV"* ]] || complain "$output"
  verdict
}

@test "gradients: cosines between layers of one shape, and how norms go with the loss" {
  /usr/bin/python3 - <<'END'
import json, os, struct
for step, scale in ((1, 1), (2, 2), (3, 4)):
    tensors = {"h.0.w": [3, 4], "h.1.w": [4, -3], "h.2.w": [-3, -4], "head": [1, 1, 1]}
    header, data = {}, b""
    for name, values in tensors.items():
        values = struct.pack(f"<{len(values)}f", *(value * scale for value in values))
        header[name] = {"dtype": "F32", "shape": [len(values) // 4], "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    os.makedirs(f"related/checkpoint_{step}", exist_ok=True)
    with open(f"related/checkpoint_{step}/gradients.pt", "wb") as file:  # safetensors: the file's beginning tells
        file.write(struct.pack("<Q", len(text)) + text + data)
END
  {
    printf '#zs-metrics 1\n#@ r model.name=x\nrun\tstep\tloss\n'
    printf 'r\t1\t9\nr\t2\t8\nr\t3\t6\n'
  } | zs-aggregate --format h5 -o related/metrics.h5
  run -0 zs-report --gradients related
  [[ $output == *"Between layers"* && $output == *"With the loss"* ]] || complain "$output"
  grep -q '^| `h.0` | 1.00 | 0.000 | -1.00 |' <<<"$output" || complain "cosines: $(grep '^| `h.0`' <<<"$output")"
  # Norms 5, 10, 20 fall exactly as the loss rises: 9, 8, 6.
  grep -q '^| `h.0` | -1.00 | 3 | - | 0 |' <<<"$output" || complain "correlation: $(grep '^| `h.0`' <<<"$output")"
  verdict
}

@test "gradients: the norms of micro-batches are the same at any stage and on any ranks, and one's is that of its gradient" {
  local tiny="--model_name tiny --num_layers 1 --seq_length 32 --batch_size 1 --bench_step 1 --save_gradient_norms"
  zs-train $tiny --zero_stage 0 --gradient_accumulation_steps 4 --run_name four >log
  mpirun -n 2 zs-train $tiny --zero_stage 3 --gradient_accumulation_steps 2 --run_name two >log
  zs-train $tiny --run_name one >log
  for name in four two one; do zs-report --gradients $name -o $name.tsv || complain $name; done
  cut -f 3-4,15-17 four.tsv >four.noise
  cut -f 3-4,15-17 two.tsv | diff four.noise - || complain "another stage on two ranks"
  [ "$(awk -F '\t' '$3 == "whole" { print $15, ($16 > 0), ($17 > 0) }' four.tsv)" = "4 1 1" ] || complain "$(grep whole four.tsv)"
  [ "$(awk -F '\t' 'NR > 1 { print $15 $16 $17 }' one.tsv | sort -u)" = 1 ] || complain "one micro-batch has no variance"
  zs-report --gradients four -f md >four.md
  grep -q 'variance over micro-batches | noise scale' four.md || complain "no columns"
  grep -q '^- By what the 4 micro-batches at step 1 differ, the mean gradient of \*\*.* micro-batches\*\*' four.md || complain "no sentence"
  run -2 zs-train $tiny --save_gradients false
  [[ $output == *"save_gradient_norms is of gradients that are saved"* ]] || complain "$output"
  if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    # Of one micro-batch the norm is that of the gradient itself.
    /usr/bin/python3 - saved_models/*/final_checkpoint/gradient_norms.pt <<'END'
import os, sys, torch
seen = 0
for path in sys.argv[1:]:
    norms = torch.load(path, weights_only=True)
    whole = torch.load(os.path.dirname(path) + "/gradients.pt", weights_only=True)
    for name, values in norms.items():
        if len(values) > 1: continue
        seen += 1
        assert abs(values[0].item() - whole[name].double().norm().item()) <= 1e-9 * values[0].item(), name
assert seen > 10, seen
END
  fi
  verdict
}
