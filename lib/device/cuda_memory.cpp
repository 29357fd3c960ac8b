// SPDX-License-Identifier: Apache-2.0
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cublasLt.h>
#include <cudnn.h>

#include <memory>

#include "base/error.hpp"
#include "base/number.hpp"
#include "device/cuda.hpp"

namespace zs::device::cuda {

namespace allocator = c10::cuda::CUDACachingAllocator;

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw Error(std::string(what) + ": " + cudaGetErrorString(status));
}

cudaStream_t stream() { return c10::cuda::getCurrentCUDAStream(); }

Buffer allocate(const Device& device, std::int64_t bytes) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device.index));
  try {
    auto memory =
        std::make_shared<at::DataPtr>(allocator::get()->allocate(static_cast<std::size_t>(bytes + (bytes == 0))));
    return {{memory, static_cast<std::byte*>(memory->get())}, bytes, device};
  } catch (const c10::OutOfMemoryError&) {
    const Statistics now = cuda::statistics(device);
    throw Error("no room for " + to_bytes_text(static_cast<double>(bytes)) + " on " + to_text(device) + ", where " +
                to_bytes_text(static_cast<double>(now.allocated)) +
                " are held: a higher --zero_stage, a smaller --batch_size or --activation_checkpointing needs less");
  }
}

Statistics statistics(const Device& device) {
  const auto all = allocator::getDeviceStats(static_cast<c10::DeviceIndex>(device.index));
  return {all.allocated_bytes[0].current, all.allocated_bytes[0].peak};
}

void reset_peak(const Device& device) { allocator::resetPeakStats(static_cast<c10::DeviceIndex>(device.index)); }

std::map<std::string, std::string> arithmetic(const Device& device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device.index), "GPU");
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "driver");
  check(cudaRuntimeGetVersion(&runtime), "CUDA");
  const auto version = [](std::size_t number) { return std::to_string(number); };
  return {{"device", "cuda"},
          {"gpu", properties.name},
          {"gpu_driver", version(static_cast<std::size_t>(driver))},
          {"cuda", version(static_cast<std::size_t>(runtime))},
          {"cublas", version(cublasLtGetVersion())},
          {"cudnn", version(cudnnGetVersion())}};
}

}  // namespace zs::device::cuda
