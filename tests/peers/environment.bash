# SPDX-License-Identifier: Apache-2.0
# The Python packages that zs is compared with, in an environment of their own in the cache, or in $PEERS. To be sourced: sets
# `python`. The one place that names their releases; nothing is fetched where the environment has these.
# shellcheck shell=bash disable=SC2034 # python is for who sources it
packages=(
  torch==2.12.1 torchvision==0.27.1 numpy==2.4.6 pillow==13.0.0 # torchvision takes this torch alone
  transformers==5.23.0 peft==0.21.2 bitsandbytes==0.50.2 safetensors==0.8.0 tokenizers==0.23.3
  # 0.2.1 computes as Debian's library 0.1.97 does: from 0.2.2 on, Unigram prefers other pieces among those of equal score.
  sentencepiece==0.2.1
  wandb==0.31.0 tensorboard==2.21.0
  # For Holistic Trace Analysis, whose columns of numbers pandas 3 refuses to widen.
  pandas==2.3.3 plotly==7.1.0 networkx==3.6.1 psutil==7.2.2 pydantic==2.14.3 pydot==4.0.1
)
alone=(HolisticTraceAnalysis==0.5.0) # without what else it names, and does not need to analyse: JupyterLab
peers=${PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/zs/peers}
python=$peers/bin/python
peers_complete() {
  # shellcheck disable=SC2016
  "$python" -I -c '
import sys
from importlib.metadata import PackageNotFoundError, version
def has(pin):
    name, wanted = pin.split("==")
    try:
        return version(name).split("+")[0] == wanted
    except PackageNotFoundError:
        return False
sys.exit(not all(map(has, sys.argv[1:])))' "${packages[@]}" "${alone[@]}" 2>/dev/null
}
mkdir -p "${peers%/*}"
exec {peers_lock}>"$peers.lock"
flock "$peers_lock"
if ! peers_complete; then
  echo "Python packages to compare with go to $peers (5 GB)" >&2
  [[ -x $python ]] || python3 -m venv "$peers"
  "$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check "${packages[@]}"
  "$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check --no-deps "${alone[@]}"
fi
exec {peers_lock}>&-
