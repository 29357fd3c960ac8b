// SPDX-License-Identifier: Apache-2.0
// Backward of causal attention of bfloat16 on Hopper GPUs, by FlashAttention-3's kernels (Shah et al. 2024). The
// gradient of a query is a sum over blocks of keys, added in float32 from the last block to the first, so that the bits
// repeat. Independent of LibTorch: pointers, sizes, a stream.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace zs::kernel::cuda {

/// Where numbers of [B, T, heads * D] lie: the first, and the numbers from one sample, and one token, to the next.
struct HopperPlace {
  void* first;
  std::int64_t sample, token;
};

/// B samples of T tokens, H heads of queries and K of keys and values, of D numbers.
struct HopperBackward {
  std::int64_t B, T, H, K, D;
  float scale;                     ///< of scores
  HopperPlace q, k, v, out, dout;  ///< bfloat16, each place a multiple of 16 bytes
  float* stats;                    ///< [B, H, T]: log of the sum of exponentials
  HopperPlace dq, dk, dv;
};

/// True for shapes with kernels: heads of at most 64 numbers, and wider ones that share keys, of at most 128.
bool hopper_fits(std::int64_t B, std::int64_t T, std::int64_t H, std::int64_t K, std::int64_t D);
/// Bytes that hopper_backward() computes in: 4 B H T D and, where heads share keys, 8 B K T D, and less than 1 % more.
std::int64_t hopper_workspace(const HopperBackward& problem);
/// Errors of a launch throw zs::Error.
void hopper_backward(const HopperBackward& problem, void* workspace, cudaStream_t stream);

}  // namespace zs::kernel::cuda
