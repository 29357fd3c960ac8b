# SPDX-License-Identifier: Apache-2.0
# Sourced: the environment of tests/bugs, with what people train with besides DeepSpeed, in the same cache.
# shellcheck shell=bash disable=SC2154 # python, cache: of tests/bugs
# shellcheck source=tests/bugs/environment.bash
source "$(dirname "${BASH_SOURCE[0]}")/../bugs/environment.bash"
trainers=(transformers==5.23.0 accelerate==1.15.0 py-spy==0.4.3 h5py==3.16.0)
exec {lock}>"$cache/lock"
flock "$lock"
if ! "$python" -c 'import importlib.metadata as m, sys
for pin in sys.argv[1:]:
    assert m.version(pin.split("==")[0]) == pin.split("==")[1]' "${trainers[@]}" 2>/dev/null; then
  "$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check "${trainers[@]}"
fi
exec {lock}>&-

# plain: a Python that has PyTorch and what pip gets with it, and nothing else.
plain() {
  local into=$cache/plain torch
  torch=$("$python" -c 'import importlib.metadata as m; print("torch==" + m.version("torch").split("+")[0])')
  exec {lock}>"$cache/lock"
  flock "$lock"
  if ! "$into/bin/python" -c 'import torch' 2>/dev/null; then
    echo "PyTorch alone goes to $into (5 GB)" >&2
    python3 -m venv --clear "$into"
    "$into/bin/python" -m pip install --quiet --no-cache-dir --disable-pip-version-check "$torch" >&2
  fi
  exec {lock}>&-
  echo "$into"
}
