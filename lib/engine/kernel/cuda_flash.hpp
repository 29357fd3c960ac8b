// SPDX-License-Identifier: Apache-2.0
// Causal self-attention of float32 on a GPU, forward and backward, without storing its weights (FlashAttention, Dao et
// al. 2022). Independent of LibTorch: pointers, sizes, a stream. The same bits in every run, and for a sample
// regardless of the others: a block owns its rows of the result and adds in order, without atomics. The backward pass
// computes the weights twice, for the gradients of queries and of keys and values, which stay separate.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace zs::kernel::cuda {

/// B samples, T tokens, H heads of D numbers.
struct FlashShape {
  std::int64_t B, T, H, D;
};

/// True for each D with kernels.
bool flash_fits(std::int64_t D);

// qkv and dqkv: [B, T, 3, H, D]; out and dout: [B, T, H, D]; stats: [B, H, T], log2 of the sum of exponentials;
// scratch: B H T floats. With `tf32` a product takes 10 bits of each factor's mantissa, without it three products
// together take 21 or more (3xTF32, as LibTorch's float32 attention does); sums are float32. Errors of a launch throw
// zs::Error.
void flash_forward(const float* qkv, float* out, float* stats, const FlashShape& shape, bool tf32, cudaStream_t stream);
void flash_backward(const float* qkv, const float* out, const float* stats, const float* dout, float* dqkv,
                    float* scratch, const FlashShape& shape, bool tf32, cudaStream_t stream);

}  // namespace zs::kernel::cuda
