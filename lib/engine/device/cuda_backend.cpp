// SPDX-License-Identifier: Apache-2.0
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cublasLt.h>
#include <cudnn.h>
#include <nccl.h>

#include <memory>

#include "base/error.hpp"
#include "device/cuda.hpp"
#include "device/memory.hpp"

namespace zs::device::cuda {

namespace allocator = c10::cuda::CUDACachingAllocator;

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw Error(std::string(what) + ": " + cudaGetErrorString(status));
}

cudaStream_t stream() { return c10::cuda::getCurrentCUDAStream(); }

namespace {

std::int64_t capacity_here(const Device& device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device.index), "GPU");
  return static_cast<std::int64_t>(properties.totalGlobalMem);
}

Statistics statistics_here(const Device& device) {
  const auto stats = allocator::getDeviceStats(static_cast<c10::DeviceIndex>(device.index));
  const auto &allocated = stats.allocated_bytes[0], &reserved = stats.reserved_bytes[0];
  return {allocated.current, allocated.peak, reserved.current, reserved.peak};
}

void reset_peak_here(const Device& device) { allocator::resetPeakStats(static_cast<c10::DeviceIndex>(device.index)); }

int visible_gpus() { return c10::cuda::device_count(); }

void use(int index) {
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(index));
  at::globalContext().lazyInitDevice(at::kCUDA);
  at::globalContext().setAllowBF16ReductionCuBLAS(false);  // partial sums stay float32
  at::globalContext().setAllowFP16ReductionCuBLAS(false);
}

std::string bus_id(int index) {
  char bus[32] = {};
  check(cudaDeviceGetPCIBusId(bus, sizeof bus, index), "GPU of this rank");
  return bus;
}

}  // namespace

Buffer allocate_here(const Device& device, std::int64_t bytes) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device.index));
  try {
    auto memory =
        std::make_shared<at::DataPtr>(allocator::get()->allocate(static_cast<std::size_t>(bytes + (bytes == 0))));
    return {{memory, static_cast<std::byte*>(memory->get())}, bytes, device};
  } catch (const c10::OutOfMemoryError&) {
    throw OutOfMemory(device, bytes);
  }
}

namespace {

std::map<std::string, std::string> arithmetic_here(const Device& device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device.index), "GPU");
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "driver");
  check(cudaRuntimeGetVersion(&runtime), "CUDA");
  int nccl = 0;
  ncclGetVersion(&nccl);
  const auto version = [](std::size_t number) { return std::to_string(number); };
  return {{"device", "cuda"},
          {"gpu", properties.name},
          {"gpu_driver", version(static_cast<std::size_t>(driver))},
          {"cuda", version(static_cast<std::size_t>(runtime))},
          {"cublas", version(cublasLtGetVersion())},
          {"cudnn", version(cudnnGetVersion())},
          {"nccl", version(static_cast<std::size_t>(nccl))}};
}

std::shared_ptr<void> mark_here(const Device& device) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device.index));
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "mark");
  const std::shared_ptr<void> mark(event, [](void* held) { cudaEventDestroy(static_cast<cudaEvent_t>(held)); });
  check(cudaEventRecord(event, stream()), "mark");
  return mark;
}

double seconds_between(void* earlier, void* later) {
  float milliseconds = 0;
  check(cudaEventSynchronize(static_cast<cudaEvent_t>(later)), "wait for the GPU");
  check(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(earlier), static_cast<cudaEvent_t>(later)),
        "time");
  return milliseconds * 1e-3;
}

}  // namespace

extern "C" const Backend* zs_cuda_backend() {
  static const Backend table = {
      visible_gpus,    use,       bus_id,          allocate_here,     capacity_here, statistics_here, reset_peak_here,
      arithmetic_here, mark_here, seconds_between, &operations_here()};
  return &table;
}

}  // namespace zs::device::cuda
