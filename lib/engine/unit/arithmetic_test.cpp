// SPDX-License-Identifier: Apache-2.0
#include "unit/arithmetic.hpp"

#include <doctest/doctest.h>

namespace zs::unit {
namespace {

TEST_CASE("arithmetic: a core type older than the processor has a better one, by the processor's flags") {
  const std::string_view avx2 = "fpu sse3 avx avx2 fma",
                         avx512 = "avx2 fma avx512f avx512cd avx512bw avx512dq avx512vl",
                         amx = "avx2 fma avx512f avx512cd avx512bw avx512dq avx512vl avx512_bf16 amx_bf16";
  CHECK(better_core("Prescott", avx2) == "Haswell");
  CHECK(better_core("Sandybridge", avx2) == "Haswell");
  CHECK(better_core("Nehalem", avx512) == "SkylakeX");
  CHECK(better_core("Prescott", amx) == "SapphireRapids");
  // Knights Landing has a part of AVX-512 alone.
  CHECK(better_core("Prescott", "avx2 fma avx512f avx512cd avx512er") == "Haswell");
  SUBCASE("nothing to mend") {
    CHECK(better_core("Prescott", "fpu sse3 avx") == "");
    CHECK(better_core("Haswell", amx) == "");
    CHECK(better_core("Zen", avx512) == "");
    CHECK(better_core("", amx) == "");
    CHECK(better_core("neoversen1", "asimdhp") == "");
  }
}

TEST_CASE("arithmetic: bfloat16 is multiplied by the best that the processor has and oneDNN may use") {
  const std::string_view old = "avx2 fma avx512f", cooper = "avx2 avx512f avx512_bf16",
                         sapphire = "avx2 avx512f avx512_bf16 amx_bf16 amx_tile";
  CHECK(bfloat16_products(old, "") == "");
  CHECK(bfloat16_products(cooper, "") == "avx512_bf16");
  CHECK(bfloat16_products(sapphire, "") == "amx_bf16");
  CHECK(bfloat16_products(sapphire, "DEFAULT") == "amx_bf16");
  CHECK(bfloat16_products(sapphire, "avx512_core_amx") == "amx_bf16");
  CHECK(bfloat16_products(sapphire, "AVX512_CORE_BF16") == "avx512_bf16");
  CHECK(bfloat16_products(sapphire, "AVX512_CORE_FP16") == "avx512_bf16");
  CHECK(bfloat16_products(sapphire, "AVX512_CORE") == "");
  CHECK(bfloat16_products(cooper, "avx2") == "");
  CHECK(bfloat16_products("asimdhp bf16", "") == "");
}

TEST_CASE("arithmetic: it names LibTorch, the library that multiplies and the instruction set") {
  const Arithmetic now = arithmetic();
  CHECK(now.torch.find('.') != std::string::npos);
  CHECK(now.blas.find_first_of("0123456789") != std::string::npos);
  CHECK(!now.instruction_set.starts_with(" "));
  CHECK(now.threads >= 1);
}

}  // namespace
}  // namespace zs::unit
