// SPDX-License-Identifier: Apache-2.0
// Shared by the sources of the GPU library.
#pragma once
#include <cuda_runtime_api.h>

#include "device/backend.hpp"

namespace zs::device::cuda {

/// Throws zs::Error with `what` and CUDA's reason unless the call succeeded.
void check(cudaError_t status, const char* what);

/// LibTorch's stream on the current device.
cudaStream_t stream();

/// Memory from LibTorch's caching allocator, which counts it. Freed in the order of the current stream.
Buffer allocate_here(const Device& device, std::int64_t bytes);

const Operations& operations_here();

}  // namespace zs::device::cuda
