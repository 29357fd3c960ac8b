// SPDX-License-Identifier: Apache-2.0
// For loops whose bits do not depend on the width of vectors (nothing is reordered or fused): the library picks the
// widest of the machine it runs on.
#pragma once

#if defined(__x86_64__)
#define ZS_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ZS_VECTORISED
#endif
