# SPDX-License-Identifier: Apache-2.0
# share/libtorch fetches a LibTorch completely or not at all, and rejects one that does not fit with one sentence. The wheels
# are small ones made here; pip takes them from a folder, without network.
setup() {
  load helper
  cd "$BATS_TEST_TMPDIR"
  export XDG_CACHE_HOME=$PWD/cache PIP_NO_INDEX=1 PIP_FIND_LINKS=$PWD/index PIP_CONFIG_FILE=/dev/null
  cache=$XDG_CACHE_HOME/zs home=$XDG_CACHE_HOME/zs/libtorch-2.11.0/torch
  libtorch=$ROOT/share/libtorch
  mkdir index
  python3 -m pip --version >/dev/null 2>&1 || no_package python3-pip
}

# wheel NAME VERSION MEGABYTES FILE...: a wheel in index/ with these files, the first so large; prints its requirement.
wheel() {
  python3 - "$@" <<'EOF'
import hashlib, sys, zipfile
name, version, megabytes, *files = sys.argv[1:]
path = f"index/{name.replace('-', '_')}-{version}-py3-none-any.whl"
with zipfile.ZipFile(path, "w") as z:
    info = f"{name.replace('-', '_')}-{version}.dist-info/"
    z.writestr(info + "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr(info + "RECORD", "")
    for i, file in enumerate(files):
        z.writestr(file, b"x" * (int(megabytes) << 20 if i == 0 else 3))
print(f"{name}=={version} --hash=sha256:{hashlib.sha256(open(path, 'rb').read()).hexdigest()}")
EOF
}

requirements() {
  wheel torch 2.11.0 1 torch/lib/libtorch_cpu.so torch/lib/libtorch_python.so torch/include/ATen/ATen.h torch/nn/modules.py
  wheel nvidia-cuda-runtime 13.0.96 0 nvidia/cu13/lib/libcudart.so.13
}

refused() { # refused WORDS COMMAND...: status 2, one line with these words, and no folder of a LibTorch
  local words=$1
  shift
  run -2 --separate-stderr "$@"
  [[ $(grep -c '^libtorch: [^f]' <<<"$stderr") == 1 && $stderr == *"$words"* ]] || { echo "$* said: $stderr"; return 1; }
  [[ -z $(find "$cache" -name 'libtorch_cpu.so' -o -name unpacking 2>/dev/null) ]] || { echo "$*: something is left"; return 1; }
}

@test "libtorch: headers and libraries alone are unpacked, once, and the wheels are not kept" {
  requirements >list
  run -0 --separate-stderr "$libtorch" fetch list
  [[ $stderr == *"$cache/libtorch-2.11.0 ("*" MB, for every checkout on this machine)" ]]
  [[ $(cd "$cache" && find . -type f | sort | xargs) == "./libtorch-2.11.0/nvidia/cu13/lib/libcudart.so.13 ./libtorch-2.11.0/torch/include/ATen/ATen.h ./libtorch-2.11.0/torch/lib/libtorch_cpu.so ./lock" ]]
  [[ $("$libtorch" home) == "$home" ]]
  rm -r index
  run -0 --separate-stderr "$libtorch" fetch list
  [[ -z $stderr ]]
}

@test "libtorch: a wheel with another hash is refused, and is not kept" {
  requirements | sed '1s/sha256:..../sha256:0000/' >list
  refused "torch==2.11.0: what was fetched does not have the hash that is pinned here" "$libtorch" fetch list
  [[ -z $(find "$cache" -name '*.whl') ]]
}

@test "libtorch: a fetch that was cut off goes on with the wheels that it has, if they are whole" {
  requirements >list
  mv index/nvidia* .
  refused "nvidia-cuda-runtime==13.0.96: " "$libtorch" fetch list
  [[ -e $cache/downloads/torch-2.11.0-py3-none-any.whl ]]
  mv nvidia* index
  mv index/torch* .
  mkdir -p "$cache/unpacking/torch" # of a process that was killed
  run -0 --separate-stderr "$libtorch" fetch list
  [[ $stderr != *"fetching torch=="* && -e $home/lib/libtorch_cpu.so && ! -e $home/../nvidia/torch ]]

  rm -r "$cache/libtorch-2.11.0"
  head -c 1000 torch-2.11.0-py3-none-any.whl >"$cache/downloads/torch-2.11.0-py3-none-any.whl"
  mv torch* index
  run -0 --separate-stderr "$libtorch" fetch list
  [[ $stderr == *"fetching torch=="* && $(stat -c %s "$home/lib/libtorch_cpu.so") == 1048576 ]]
}

@test "libtorch: without a network it says so, and what else there is" {
  requirements >list
  unset PIP_NO_INDEX
  export PIP_INDEX_URL=http://127.0.0.1:9/simple PIP_FIND_LINKS=/nonexistent PIP_RETRIES=0
  refused "the package index cannot be reached, or has none; mend the network and try again, put the wheel into $cache/downloads" "$libtorch" fetch list
}

@test "libtorch: of the sources of kernels the headers alone are kept, and an archive with another hash is refused" {
  cp -r "$ROOT/share" .
  libtorch=$PWD/share/libtorch
  at=xformers-1.2/third_party
  mkdir -p "$at"/cutlass/include/cute "$at"/flash-attention/hopper simple/xformers
  touch "$at"/cutlass/include/cute/tensor.hpp "$at"/flash-attention/hopper/{flash.h,mask.hpp,setup.py} xformers-1.2/setup.py
  tar -czf simple/xformers-1.2.tar.gz xformers-1.2
  echo "xformers==1.2 --hash=sha256:$(sha256sum simple/xformers-1.2.tar.gz | cut -d' ' -f1)" >share/wheels/kernels.txt
  [[ -z $("$libtorch" kernels) ]]
  export PIP_INDEX_URL=http://127.0.0.1:9/simple
  refused "xformers==1.2: http://127.0.0.1:9/simple cannot be reached, or has no source of it; mend the network and try again, or put xformers-1.2.tar.gz into $cache/downloads" "$libtorch" fetch-kernels
  [[ -z $("$libtorch" kernels) ]]
  # An index of one page, as a web server shows it.
  echo '<a href="../xformers-1.2.tar.gz#sha256=0">xformers-1.2.tar.gz</a>' >simple/xformers/index.html
  : >served
  python3 -u -m http.server --bind 127.0.0.1 0 >served 2>&1 3>&- &
  local server=$! port=
  for _ in {1..100}; do
    port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' served)
    [[ -z $port ]] || break
    sleep 0.1
  done
  export PIP_INDEX_URL=http://127.0.0.1:$port/simple/
  run -0 --separate-stderr "$libtorch" fetch-kernels
  kernels=$("$libtorch" kernels)
  [[ $(cd "$kernels" && find . -type f | sort | xargs) == "./cutlass/include/cute/tensor.hpp ./flash-attention/hopper/flash.h ./flash-attention/hopper/mask.hpp" ]]
  rm -r "$kernels"
  sed -i 's/sha256:..../sha256:0000/' share/wheels/kernels.txt
  refused "xformers==1.2: what was fetched does not have the hash that is pinned here" "$libtorch" fetch-kernels
  kill $server
}

@test "libtorch: a disk that is full while it unpacks leaves nothing half-made" {
  requirements >list
  # unzip sees a full disk where a file may not grow beyond 512 KiB; the wheel of 1 MiB is there already.
  mkdir -p "$cache/downloads"
  cp index/* "$cache/downloads"
  # shellcheck disable=SC2016
  refused "could not be unpacked (a full disk?); make room" bash -c 'trap "" XFSZ; ulimit -f 512; exec "$0" fetch list' "$libtorch"
  run -0 "$libtorch" fetch list
}

@test "libtorch: too little room is told before anything is unpacked" {
  requirements >list
  mkdir bin
  printf '#!/bin/sh\necho head; echo "disk 9M 9M 0M 100%% /"\n' >bin/df
  chmod +x bin/df
  PATH=$PWD/bin:$PATH refused "the disk is full (0 MB free, about 1 needed)" "$libtorch" fetch list
}

@test "libtorch: two that fetch at once make one folder" {
  requirements >list
  "$libtorch" fetch list 2>one &
  "$libtorch" fetch list 2>two
  wait $!
  [[ $(cat one two | grep -c 'for every checkout') == 1 ]]
}

# A folder like a LibTorch's.
like_libtorch() { # like_libtorch VERSION ABI
  mkdir -p like/{lib,include/ATen,include/torch/headeronly}
  touch like/include/ATen/ATen.h
  IFS=. read -r major minor patch <<<"$1"
  printf '#define TORCH_VERSION_%s %s\n' MAJOR "$major" MINOR "$minor" PATCH "$patch" >like/include/torch/headeronly/version.h
  echo "void f() {} const char* abi = \"$2\";" >f.cpp
  g++ -shared -fPIC f.cpp -o like/lib/libc10.so
  g++ -shared -fPIC f.cpp -Wl,-soname,libcupti.so.99 -o libcupti.so.99
  g++ -shared -fPIC f.cpp -Wl,--no-as-needed ${3:+./libcupti.so.99} -o like/lib/libtorch_cpu.so
}

@test "libtorch: a TORCH_HOME that does not suit is refused with its reason" {
  refused "there is none here yet: make deps fetches it" "$libtorch" check missing
  mkdir empty
  refused "empty: no LibTorch (include/ATen/ATen.h and lib/libtorch_cpu.so are not both there)" "$libtorch" check empty
  like_libtorch 1.12.1 __cxx11
  refused "like: version 1.12.1, and zs needs 1.13 or later" "$libtorch" check like
  like_libtorch 2.5.0 other
  refused "like: built with the C++ ABI of before 2015" "$libtorch" check like
  like_libtorch 2.11.0 __cxx11 missing
  refused "like/lib/libtorch_cpu.so: needs libcupti.so.99, which no folder of the loader has" bash -c "rm libcupti.so.99; exec '$libtorch' check like"
  like_libtorch 2.11.0 __cxx11
  run -0 "$libtorch" check like
  echo text >like/lib/libtorch_cpu.so
  refused "this machine cannot load it" "$libtorch" check like
}

@test "libtorch: a PyTorch of 2.7 or later that python3 has is found, an older one is not" {
  mkdir -p python/torch
  touch python/torch/__init__.py
  export PYTHONPATH=$PWD/python
  like_libtorch 2.7.0 __cxx11
  cp -r like/* python/torch
  [[ $("$libtorch" home) == "$PWD/python/torch" ]]
  like_libtorch 2.6.0 __cxx11
  cp -r like/* python/torch
  [[ -z $("$libtorch" home) ]]
}

@test "libtorch: make says what is wrong with TORCH_HOME and TORCH, and builds nothing" {
  run -2 make -s -C "$ROOT" BUILD="$PWD/out" TORCH_HOME=/nonexistent
  [[ $output == *"libtorch: /nonexistent: no LibTorch"* && $output != *g++* ]]
  run -2 make -s -C "$ROOT" TORCH=conda help
  [[ $output == *"TORCH=conda is not known; TORCH=debian takes the distribution's LibTorch"* ]]
}

@test "libtorch: what includes LibTorch's headers compiles with the distribution's too, where that is installed" {
  [ -e /usr/include/torch/csrc/api/include/torch/version.h ] || skip "there is no LibTorch of the distribution: make deps TORCH=debian"
  cd "$ROOT"
  read -ra flags < <(make -s TORCH=debian flags)
  cp lib/engine/unit/tensor.hpp "$BATS_TEST_TMPDIR"
  g++ "${flags[@]}" -x c++-header "$BATS_TEST_TMPDIR/tensor.hpp"
  mapfile -t sources < <(grep -lE '^#include <(ATen|c10|torch)/' lib/*/*/*.cpp | grep -vE '/cuda|_test\.cpp$')
  ((${#sources[@]} > 15))
  printf '%s\n' "${sources[@]}" | xargs -n 4 -P 2 g++ "${flags[@]}" -include "$BATS_TEST_TMPDIR/tensor.hpp" -fsyntax-only
}
