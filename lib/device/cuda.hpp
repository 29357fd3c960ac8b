// SPDX-License-Identifier: Apache-2.0
// What a build with CUDA adds to this folder: a GPU's memory and its table of operations. Included where ZS_CUDA is
// set.
#pragma once
#include <cuda_runtime_api.h>

#include "device/memory.hpp"
#include "device/operations.hpp"

namespace zs::device::cuda {

/// Throws zs::Error naming `what` and CUDA's reason unless the call succeeded.
void check(cudaError_t status, const char* what);

/// The stream that LibTorch computes on, of the current device.
cudaStream_t stream();

/// From LibTorch's caching allocator, so that its statistics count both. Freed in the order of the current stream.
Buffer allocate(const Device& device, std::int64_t bytes);
Statistics statistics(const Device& device);
void reset_peak(const Device& device);

std::map<std::string, std::string> arithmetic(const Device& device);

const Operations& operations();

}  // namespace zs::device::cuda
