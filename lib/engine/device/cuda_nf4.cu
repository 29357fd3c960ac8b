// SPDX-License-Identifier: Apache-2.0
// device::from_nf4 on a GPU.
#include "device/cuda.hpp"
#include "device/nf4.hpp"

namespace zs::device::cuda {
namespace {

constexpr int kThreads = 256, kEach = 8;  ///< numbers of a thread: of one block
static_assert(kNf4Block % kEach == 0);

template <typename T>
struct alignas(16) Numbers {
  T value[kEach];
};

/// The values, as an argument of a kernel.
struct Nf4Values {
  float entry[16];
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    from_nf4_kernel(Nf4Parts parts, Nf4Values values, T* numbers, std::int64_t n) {
  __shared__ float table[16];
  if (threadIdx.x < 16) table[threadIdx.x] = values.entry[threadIdx.x];
  __syncthreads();
  const std::int64_t begin = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kEach;
  if (begin >= n) return;
  const float scale = parts.scale(begin / kNf4Block);
  if (begin + kEach > n) {
    for (std::int64_t i = begin; i < n; ++i) narrow(table[nf4_code(parts.codes, i)] * scale, numbers[i]);
    return;
  }
  const std::uint32_t codes = reinterpret_cast<const std::uint32_t*>(parts.codes)[begin / kEach];
  Numbers<T> out;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    // Two in a byte, the first in its high half.
    const int shift = k / 2 * 8 + (k % 2 == 0 ? 4 : 0);
    narrow(table[codes >> shift & 15u] * scale, out.value[k]);
  }
  reinterpret_cast<Numbers<T>*>(numbers)[begin / kEach] = out;
}

template <typename T>
void convert(const View& bytes, const Nf4& form, const View& numbers) {
  Nf4Values values{};
  std::copy(kNf4.begin(), kNf4.end(), values.entry);
  const std::int64_t threads = (form.numel + kEach - 1) / kEach;
  from_nf4_kernel<<<static_cast<unsigned>((threads + kThreads - 1) / kThreads), kThreads, 0, stream()>>>(
      Nf4Parts(bytes.data, form), values, reinterpret_cast<T*>(numbers.data), form.numel);
  check(cudaGetLastError(), "matrix of 4 bits");
}

}  // namespace

extern "C" void zs_cuda_from_nf4(const View& bytes, const Nf4& form, const View& numbers) {
  if (form.numel == 0) return;
  numbers.type == Type::float32 ? convert<float>(bytes, form, numbers) : convert<Bfloat16>(bytes, form, numbers);
}

}  // namespace zs::device::cuda
