// SPDX-License-Identifier: Apache-2.0
// For loops whose bits do not depend on the vector width (nothing is reordered or fused): the library selects the
// widest version that the machine supports.
#pragma once

#if defined(__x86_64__)
#define ZS_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ZS_VECTORISED
#endif
