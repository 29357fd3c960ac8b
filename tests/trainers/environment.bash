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
