// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda_float8.hpp"

#include <cuda_fp8.h>

#include <algorithm>
#include <cfloat>

#include "device/arithmetic.hpp"
#include "kernel/cuda_pack.hpp"

namespace zs::kernel::cuda {
namespace {

constexpr int kThreads = 256;

// ---- the largest magnitude ------------------------------------------------------------------------------------------
/// Magnitudes are compared as the bits of their float32: these ascend with them, and a NaN's are above infinity's.
__device__ inline unsigned magnitude(float x) { return __float_as_uint(x) & 0x7fffffffU; }

template <typename T>
__global__ void __launch_bounds__(kThreads) largest_kernel(const T* __restrict__ x, unsigned* most, std::int64_t n) {
  constexpr int kPack = Pack<T>::kSize, kAtOnce = 4;
  __shared__ unsigned of_warp[kThreads / kWarp];
  unsigned mine = 0;
  const std::int64_t packs = n / kPack, step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < packs; i += step * kAtOnce) {
    Pack<T> pack[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (i + u * step < packs) pack[u] = load(x + (i + u * step) * kPack);
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (i + u * step >= packs) break;
#pragma unroll
      for (int j = 0; j < kPack; ++j) mine = max(mine, magnitude(wide(pack[u].value[j])));
    }
  }
  for (std::int64_t i = packs * kPack + first; i < n; i += step) mine = max(mine, magnitude(wide(x[i])));
  mine = __reduce_max_sync(0xffffffffU, mine);
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = mine;
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  mine = __reduce_max_sync(0xffffffffU, threadIdx.x < kThreads / kWarp ? of_warp[threadIdx.x] : 0);
  if (threadIdx.x == 0) atomicMax(most, mine);
}

/// The largest of each column of 128 columns and kTall rows, 16 bytes of a row a thread.
constexpr int kSide = 128, kTall = 256;
template <typename T>
__global__ void __launch_bounds__(kThreads)
    largest_of_columns_kernel(const T* __restrict__ x_RC, unsigned* most_C, std::int64_t R, std::int64_t C) {
  constexpr int kPack = Pack<T>::kSize, kAcross = kSide / kPack, kDown = kThreads / kAcross;
  __shared__ unsigned of_row[kDown][kSide];
  const int column = static_cast<int>(threadIdx.x) % kAcross * kPack, first = static_cast<int>(threadIdx.x) / kAcross;
  const std::int64_t top = static_cast<std::int64_t>(blockIdx.x) * kTall, left = blockIdx.y * std::int64_t{kSide};
  unsigned mine[kPack] = {};
  if (left + column < C) {
#pragma unroll 4
    for (int row = first; row < kTall; row += kDown) {
      if (top + row >= R) break;
      const Pack<T> pack = load(x_RC + (top + row) * C + left + column);
#pragma unroll
      for (int j = 0; j < kPack; ++j) mine[j] = max(mine[j], magnitude(wide(pack.value[j])));
    }
  }
#pragma unroll
  for (int j = 0; j < kPack; ++j) of_row[first][column + j] = mine[j];
  __syncthreads();
  const int column_of_thread = static_cast<int>(threadIdx.x);
  if (column_of_thread >= kSide || left + column_of_thread >= C) return;
  unsigned most = 0;
  for (int row = 0; row < kDown; ++row) most = max(most, of_row[row][column_of_thread]);
  atomicMax(most_C + left + column_of_thread, most);
}

// ---- rounding -------------------------------------------------------------------------------------------------------
/// 16 numbers of 8 bits.
struct alignas(16) Sixteen {
  unsigned words[4];
};

/// A power of two, so that products with it and with its inverse are exact.
__device__ inline float power_of_two(float most) {
  return fminf(__uint_as_float(__float_as_uint(448.0F / most) & 0xff800000U), 0x1p126F);
}

/// `scale(i)` is the scale of number i.
template <Float8 kFormat, typename T, typename Scale>
__device__ inline Sixteen rounded(const T* x, Scale scale) {
  constexpr auto kKind = kFormat == Float8::e4m3 ? __NV_E4M3 : __NV_E5M2;
  constexpr int kPack = Pack<T>::kSize;
  float numbers[16];
#pragma unroll
  for (int p = 0; p < 16 / kPack; ++p) {
    const Pack<T> pack = load(x + p * kPack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) numbers[p * kPack + j] = wide(pack.value[j]) * scale(p * kPack + j);
  }
  Sixteen out;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    const float* const four = numbers + 4 * w;
    const unsigned low = __nv_cvt_float2_to_fp8x2(make_float2(four[0], four[1]), __NV_SATFINITE, kKind),
                   high = __nv_cvt_float2_to_fp8x2(make_float2(four[2], four[3]), __NV_SATFINITE, kKind);
    out.words[w] = low | high << 16;
  }
  return out;
}

__device__ inline void put(void* to, std::int64_t at, const Sixteen& what) {
  *reinterpret_cast<Sixteen*>(static_cast<std::byte*>(to) + at) = what;
}

/// Tiles of 128 rows and 128 columns. A thread rounds 16 numbers of a row four times; then it takes the words of 4
/// columns and 16 rows, and turns them. Words of a tile's row are moved by 4 for each 16 rows, so that a warp meets no
/// bank of shared memory twice.
constexpr int kWords = kSide / 4, kStride = kWords + 1;
__device__ inline int word_at(int row, int word) { return row * kStride + (word + row / 16 * 4) % kWords; }

template <typename T, Float8 kFormat, bool kByColumn>
__global__ void __launch_bounds__(kThreads)
    round_kernel(const T* __restrict__ x_RC, const float* __restrict__ most, void* __restrict__ rows_RC,
                 void* __restrict__ columns_CR, float* __restrict__ unit, std::int64_t R, std::int64_t C) {
  __shared__ unsigned tile[kSide * kStride];
  const std::int64_t top = static_cast<std::int64_t>(blockIdx.x) * kSide, left = blockIdx.y * std::int64_t{kSide};
  const int column = static_cast<int>(threadIdx.x) % 8 * 16;
  float scales[kByColumn ? 16 : 1];
  if constexpr (kByColumn) {
    if (left + column < C) {
#pragma unroll
      for (int j = 0; j < 16; ++j) scales[j] = power_of_two(most[left + column + j]);
      if (blockIdx.x == 0 && threadIdx.x < 8) {
        for (int j = 0; j < 16; ++j) unit[left + column + j] = 1 / scales[j];
      }
    }
  } else {
    scales[0] = device::float8_scale(kFormat == Float8::e4m3 ? device::kMostOfE4m3 : 57344.0F, most[0]);
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) unit[0] = 1 / scales[0];
  }
#pragma unroll
  for (int turn = 0; turn < 4; ++turn) {
    const int row = turn * 32 + static_cast<int>(threadIdx.x) / 8;
    if (top + row >= R || left + column >= C) continue;
    const std::int64_t at = (top + row) * C + left + column;
    const Sixteen numbers = rounded<kFormat>(x_RC + at, [&](int i) { return scales[kByColumn ? i : 0]; });
    if (rows_RC) put(rows_RC, at, numbers);
#pragma unroll
    for (int w = 0; w < 4; ++w) tile[word_at(row, column / 4 + w)] = numbers.words[w];
  }
  if (!columns_CR) return;
  __syncthreads();
  const int row = static_cast<int>(threadIdx.x) % 8 * 16, word = static_cast<int>(threadIdx.x) / 8;
  if (top + row >= R || left + 4 * word >= C) return;
  Sixteen columns[4];
#pragma unroll
  for (int w = 0; w < 4; ++w) {  // bytes k of 4 words below each other become word w of column k
    unsigned rows[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) rows[j] = tile[word_at(row + 4 * w + j, word)];
    const unsigned a = __byte_perm(rows[0], rows[1], 0x5140), b = __byte_perm(rows[2], rows[3], 0x5140),
                   c = __byte_perm(rows[0], rows[1], 0x7362), d = __byte_perm(rows[2], rows[3], 0x7362);
    columns[0].words[w] = __byte_perm(a, b, 0x5410), columns[1].words[w] = __byte_perm(a, b, 0x7632);
    columns[2].words[w] = __byte_perm(c, d, 0x5410), columns[3].words[w] = __byte_perm(c, d, 0x7632);
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) put(columns_CR, (left + 4 * word + k) * R + top + row, columns[k]);
}

/// A warp a row: it reads the row twice, the second time out of a cache.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    round_rows_kernel(const T* __restrict__ x_RC, void* __restrict__ rows_RC, float* __restrict__ unit_R,
                      std::int64_t R, std::int64_t C) {
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kWarp;
  if (row >= R) return;
  constexpr int kPack = Pack<T>::kSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const T* const x_C = x_RC + row * C;
  unsigned most = 0;
#pragma unroll 4
  for (std::int64_t i = lane * kPack; i < C; i += kWarp * kPack) {
    const Pack<T> pack = load(x_C + i);
#pragma unroll
    for (int j = 0; j < kPack; ++j) most = max(most, magnitude(wide(pack.value[j])));
  }
  const float scale = power_of_two(__uint_as_float(__reduce_max_sync(0xffffffffU, most)));
  if (lane == 0) unit_R[row] = 1 / scale;
  for (std::int64_t i = lane * 16; i < C; i += kWarp * 16)
    put(rows_RC, row * C + i, rounded<Float8::e4m3>(x_C + i, [scale](int) { return scale; }));
}

}  // namespace

template <typename T>
void largest(const T* x, float* most, std::int64_t n, cudaStream_t stream) {
  constexpr std::int64_t kMostBlocks = 132 * 8;  // no bit depends on it
  cudaMemsetAsync(most, 0, sizeof(float), stream);
  const std::int64_t blocks = std::clamp<std::int64_t>(tiles(n, kThreads * Pack<T>::kSize * 4), 1, kMostBlocks);
  largest_kernel<T><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(x, reinterpret_cast<unsigned*>(most), n);
  check("largest magnitude");
}

template <typename T>
void round_to_float8(const T* x_RC, const float* most, Float8 format, void* rows_RC, void* columns_CR, float* unit,
                     std::int64_t R, std::int64_t C, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(tiles(R, kSide)), static_cast<unsigned>(tiles(C, kSide)));
  if (format == Float8::e4m3)
    round_kernel<T, Float8::e4m3, false><<<grid, kThreads, 0, stream>>>(x_RC, most, rows_RC, columns_CR, unit, R, C);
  else
    round_kernel<T, Float8::e5m2, false><<<grid, kThreads, 0, stream>>>(x_RC, most, rows_RC, columns_CR, unit, R, C);
  check("rounding to 8 bits");
}

template <typename T>
void round_rows_to_float8(const T* x_RC, void* rows_RC, float* unit_R, std::int64_t R, std::int64_t C,
                          cudaStream_t stream) {
  round_rows_kernel<T>
      <<<static_cast<unsigned>(tiles(R, kThreads / kWarp)), kThreads, 0, stream>>>(x_RC, rows_RC, unit_R, R, C);
  check("rounding of rows to 8 bits");
}

template <typename T>
void round_columns_to_float8(const T* x_RC, float* most_C, void* columns_CR, float* unit_C, std::int64_t R,
                             std::int64_t C, cudaStream_t stream) {
  const auto grid = [&](int tall) {
    return dim3(static_cast<unsigned>(tiles(R, tall)), static_cast<unsigned>(tiles(C, kSide)));
  };
  cudaMemsetAsync(most_C, 0, static_cast<std::size_t>(C) * sizeof(float), stream);
  largest_of_columns_kernel<T><<<grid(kTall), kThreads, 0, stream>>>(x_RC, reinterpret_cast<unsigned*>(most_C), R, C);
  round_kernel<T, Float8::e4m3, true>
      <<<grid(kSide), kThreads, 0, stream>>>(x_RC, most_C, nullptr, columns_CR, unit_C, R, C);
  check("rounding of columns to 8 bits");
}

#define ZS_FOR(T)                                                                                                    \
  template void largest<T>(const T*, float*, std::int64_t, cudaStream_t);                                            \
  template void round_to_float8<T>(const T*, const float*, Float8, void*, void*, float*, std::int64_t, std::int64_t, \
                                   cudaStream_t);                                                                    \
  template void round_rows_to_float8<T>(const T*, void*, float*, std::int64_t, std::int64_t, cudaStream_t);          \
  template void round_columns_to_float8<T>(const T*, float*, void*, float*, std::int64_t, std::int64_t, cudaStream_t)
ZS_FOR(float);
ZS_FOR(__nv_bfloat16);
#undef ZS_FOR

}  // namespace zs::kernel::cuda
