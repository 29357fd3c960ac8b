# SPDX-License-Identifier: Apache-2.0
# Sourced: PyTorch and releases of DeepSpeed from PyPI, in $BUGS (the cache); nothing of DeepSpeed is compiled.
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
[[ ! -d ${BUILD:-$root/build} ]] || PATH=$(realpath "${BUILD:-$root/build}"):$PATH
cache=${BUGS:-${XDG_CACHE_HOME:-$HOME/.cache}/zs/bugs}
python=$cache/python/bin/python
packages=(torch==2.11.0 numpy h5py setuptools wheel einops hjson msgpack ninja psutil py-cpuinfo pydantic tqdm packaging megatron-core==0.16.1)

mkdir -p "$cache"
exec {lock}>"$cache/lock"
flock "$lock"
if ! "$python" -c 'import torch, h5py, einops, hjson, msgpack, psutil, pydantic, tqdm, packaging; from importlib.metadata import version; version("megatron-core")' 2>/dev/null; then
  echo "PyTorch and what DeepSpeed imports go to $cache (5 GB)" >&2
  [[ -x $python ]] || python3 -m venv "$cache/python"
  "$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check "${packages[@]}"
fi
exec {lock}>&-

# release VERSION: its folder. Of DeepSpeed the source package as it is; transformers-V+accelerate-W: those packages, and what the
# first of them needs. DeepSpeed before 0.14 imports on processors two packages of Intel, one of which PyPI does not have: empty
# modules stand for them, since the messages go through gloo. Until 0.10 it wants pydantic 1.
release() {
  local into=$cache/deepspeed-$1 part
  [[ $1 != [a-z]* ]] || { packages_of "$1" && return; }
  if [[ ! -d $into/deepspeed ]]; then
    (
      exec {lock}>"$cache/lock"
      flock "$lock"
      [[ ! -d $into/deepspeed ]] || exit 0
      part=$(mktemp -d "$cache/part.XXXXXX")
      mkdir "$part/whole"
      [[ $1 != 0.10.* ]] || "$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check --no-deps --target "$part/whole" pydantic==1.10.26 >&2
      [[ $1 != 0.1[0-3].* ]] || touch "$part"/whole/{oneccl_bindings,intel_extension}_for_pytorch.py
      DS_ACCELERATOR=cpu DS_BUILD_OPS=0 PYTHONPATH=$part/whole PATH=$cache/python/bin:$PATH "$python" -m pip download --quiet --no-deps --no-cache-dir --disable-pip-version-check \
        --no-binary :all: --no-build-isolation -d "$part" "deepspeed==$1" >&2
      tar -xzf "$part"/deepspeed-*.tar.gz -C "$part/whole" --strip-components 1
      for link in csrc op_builder; do [[ -e $part/whole/deepspeed/ops/$link ]] || ln -sfn ../../$link "$part/whole/deepspeed/ops/$link"; done
      [[ -e $part/whole/deepspeed/accelerator ]] || ln -sfn ../accelerator "$part/whole/deepspeed/accelerator"
      mv -T "$part/whole" "$into"
      rm -r "$part"
    )
  fi
  echo "$into"
}

# packages_of NAME-VERSION[+NAME-VERSION]: a folder of them. Accelerate's own needs are here: PyTorch among them.
# Of others no package is taken that would bring another PyTorch.
packages_of() {
  local into=$cache/$1 part package needs=()
  if [[ ! -d $into ]]; then
    (
      exec {lock}>"$cache/lock"
      flock "$lock"
      [[ ! -d $into ]] || exit 0
      part=$(mktemp -d "$cache/part.XXXXXX")
      [[ $1 != accelerate* ]] || "$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check --target "$part" safetensors pyyaml 'huggingface_hub<1' >&2
      for package in ${1//+/ }; do
        needs=()
        case $package in
          accelerate* | megatron_fsdp* | spmd_types* | torchtitan*) needs=(--no-deps) ;;
          megatron_core*) needs=(--no-deps --python-version 3.12 --only-binary :all:) ;; # which run with 3.11
        esac
        "$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check --upgrade --target "$part" "${needs[@]}" "${package%-*}==${package##*-}" >&2
      done
      mv -T "$part" "$into"
    )
  fi
  echo "$into"
}

# installed MODULE PACKAGE: the package beside this PyTorch.
installed() {
  "$python" -c "import $1" 2>/dev/null || "$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check "$2"
}

# with_release VERSION COMMAND...: on processors, every step recorded.
with_release() {
  local source
  source=$(release "$1")
  env ZS_PROBE_EVERY=1 OMP_NUM_THREADS=1 PYTHONPATH="$source:$root/share/probe" DS_ACCELERATOR=cpu DS_BUILD_OPS=0 TORCHDYNAMO_DISABLE="${TORCHDYNAMO_DISABLE-1}" \
    TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 TORCH_EXTENSIONS_DIR="$cache/extensions" PATH="$cache/python/bin:$PATH" PYTHONDONTWRITEBYTECODE=1 "${@:2}"
}

trim() { sed 's/^ *//;s/ *$//' <<<"$1"; }

# said_in FILE: its headline, or its verdict.
said_in() { sed -n 's/^headline: //p' "$1" | grep . || sed -n 's/^verdict: //p' "$1" | grep . || tail -n 1 "$1"; }
