# SPDX-License-Identifier: Apache-2.0
# An OpenBLAS with kernels for an old processor causes a warning. The test loads a small library that pretends to be one.
setup() {
  load helper
  cd "$BATS_TEST_TMPDIR" || exit
  grep -qw avx2 /proc/cpuinfo || skip "this processor has nothing better than the kernels that OpenBLAS falls back to"
  unset OPENBLAS_CORETYPE
  cat >core.c <<'EOF'
#include <stdio.h>
#include <stdlib.h>
static const char *type(void) { return getenv("OPENBLAS_CORETYPE"); }
const char *openblas_get_corename(void) { return HEEDS && type() ? type() : "Prescott"; }
const char *openblas_get_config(void) { return "OpenBLAS 0.3.21 DYNAMIC_ARCH"; }
__attribute__((constructor)) static void start(void) {
  FILE *const f = fopen("starts", "a");
  fprintf(f, "%s\n", type() ? type() : "none");
  fclose(f);
}
EOF
}

train() { run --separate-stderr env LD_PRELOAD="$PWD/core.so" "$BUILD/zs-train" --model_name tiny --num_layers 1 --seq_length 32 --max_steps 1 "$@"; }

@test "arithmetic: a program on OpenBLAS's fall-back kernels starts once more, with the right core type" {
  gcc -DHEEDS=1 -shared -fPIC core.c -o core.so
  train
  [[ $status == 0 && $output == *"state_digest: "* ]]
  [[ $(xargs <starts) =~ ^none\ none\ (Haswell|SkylakeX|SapphireRapids)$ ]]
  [[ $stderr != *OpenBLAS* ]]
}

@test "arithmetic: bfloat16 is multiplied as the processor can, which the record says, and is exact with and without" {
  grep -qwE 'avx512_bf16|amx_bf16' /proc/cpuinfo && best='(avx512_bf16|amx_bf16)' || best=float32
  for most in DEFAULT AVX512_CORE; do
    [ $most = DEFAULT ] && products=$best || products=float32
    for how in --bf16 "--bf16 --compile" --amp; do
      # shellcheck disable=SC2086
      ONEDNN_MAX_CPU_ISA=$most zs-train --model_name tiny --num_layers 1 --seq_length 32 --max_steps 3 $how >log || complain "$most $how: $(tail -n 1 log)"
      [[ $how == --amp ]] || grep -qE "^run: products=$products\$" log || complain "$most $how: $(grep products log)"
      # shellcheck disable=SC2086
      ONEDNN_MAX_CPU_ISA=$most zs-verify --num_layers 1 --seq_length 16 --iterations 3 --zero_stage 3 $how >log || complain "$most $how: $(tail -n 3 log)"
      grep -qx 'verdict: exact' log || complain "$most $how: $(tail -n 3 log)"
    done
  done
  verdict
}

@test "arithmetic: kernels that cannot be mended are told, and a core type of the user's stays" {
  gcc -DHEEDS=0 -shared -fPIC core.c -o core.so
  train
  [[ $status == 0 && $(wc -l <starts) == 3 ]]
  [[ $stderr == *"warning: OpenBLAS uses its kernels for Prescott, several times slower than this processor can: leave out OPENBLAS_CORETYPE"* ]]
  rm starts
  export OPENBLAS_CORETYPE=Nehalem
  train
  [[ $status == 0 && $(sort -u starts) == Nehalem && $stderr == *"leave out OPENBLAS_CORETYPE"* ]]
}
