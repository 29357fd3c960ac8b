// SPDX-License-Identifier: Apache-2.0
// What the sources of the GPU's library share.
#pragma once
#include <cuda_runtime_api.h>

#include "device/backend.hpp"

namespace zs::device::cuda {

/// Throws zs::Error naming `what` and CUDA's reason unless the call succeeded.
void check(cudaError_t status, const char* what);

/// The stream that LibTorch computes on, of the current device.
cudaStream_t stream();

/// From LibTorch's caching allocator, so that its statistics count both. Freed in the order of the current stream.
Buffer allocate_here(const Device& device, std::int64_t bytes);

const Operations& operations_here();

}  // namespace zs::device::cuda
