// SPDX-License-Identifier: Apache-2.0
#include "device/cuda_e4m3.hpp"

#include "device/cuda.hpp"

namespace zs::device::cuda {
namespace {

constexpr int kThreads = 256, kEach = 8;  ///< numbers of a thread

struct alignas(16) Numbers {
  Bfloat16 value[kEach];
};
struct alignas(8) Codes {
  std::uint8_t value[kEach];
};

/// `kWide`: 8 numbers a thread, moved at once; else one.
template <bool kWide, bool kToCodes>
__global__ void __launch_bounds__(kThreads)
    convert_kernel(Bfloat16* numbers, std::uint8_t* codes, const float* most, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const float largest = most[0], scale = float8_scale(kMostOfE4m3, largest), factor = kToCodes ? scale : 1 / scale;
  if constexpr (!kWide) {
    if constexpr (kToCodes)
      codes[i] = to_e4m3(widen(numbers[i]) * factor);
    else
      numbers[i] = from_e4m3(codes[i], largest, factor);
  } else if constexpr (kToCodes) {
    const Numbers in = reinterpret_cast<const Numbers*>(numbers)[i];
    Codes out;
#pragma unroll
    for (int k = 0; k < kEach; ++k) out.value[k] = to_e4m3(widen(in.value[k]) * factor);
    reinterpret_cast<Codes*>(codes)[i] = out;
  } else {
    const Codes in = reinterpret_cast<const Codes*>(codes)[i];
    Numbers out;
#pragma unroll
    for (int k = 0; k < kEach; ++k) out.value[k] = from_e4m3(in.value[k], largest, factor);
    reinterpret_cast<Numbers*>(numbers)[i] = out;
  }
}

template <bool kToCodes>
void convert(const View& numbers, const View& codes, const View& most) {
  auto* const values = reinterpret_cast<Bfloat16*>(numbers.data);
  auto* const in = reinterpret_cast<std::uint8_t*>(codes.data);
  const auto* const largest = reinterpret_cast<const float*>(most.data);
  const auto blocks = [](std::int64_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); };
  const bool aligned = reinterpret_cast<std::uintptr_t>(values) % sizeof(Numbers) == 0 &&
                       reinterpret_cast<std::uintptr_t>(in) % sizeof(Codes) == 0;
  const std::int64_t wide = aligned ? numbers.count / kEach : 0, done = wide * kEach, rest = numbers.count - done;
  if (wide > 0) convert_kernel<true, kToCodes><<<blocks(wide), kThreads, 0, stream()>>>(values, in, largest, wide);
  if (rest > 0)
    convert_kernel<false, kToCodes><<<blocks(rest), kThreads, 0, stream()>>>(values + done, in + done, largest, rest);
  check(cudaGetLastError(), "weights of 8 bits");
}

}  // namespace

void to_e4m3_on_gpu(const View& numbers, const View& most, const View& codes) { convert<true>(numbers, codes, most); }
void from_e4m3_on_gpu(const View& codes, const View& most, const View& numbers) {
  convert<false>(numbers, codes, most);
}

}  // namespace zs::device::cuda
