// SPDX-License-Identifier: Apache-2.0
// How sums keep one order: a thread adds its columns in order, a warp its lanes by a fixed butterfly, a block its warps
// by their number; a tile of rows leaves one row of partial sums, and a second kernel adds the tiles by their number.
#include <algorithm>

#include "kernel/cuda_llama.hpp"
#include "kernel/cuda_pack.hpp"
#include "kernel/cuda_tiles.hpp"

namespace zs::kernel::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;

// ---- RMS norm -------------------------------------------------------------------------------------------------------
// A block, or a warp where a row has no more packs than that has lanes, owns whole rows: of kOwners threads, thread t
// has packs t, t + kOwners, ... of each, kPacks in all. They take several rows at once, so that memory is asked for all
// of them before their sums wait for each other. The bits of a sum are the same either way.

/// Where row n begins.
__device__ inline std::int64_t begin_of(const NormRows& rows, int n) {
  if (rows.heads == 1) return n * rows.ld;
  return n / rows.heads * rows.ld + n % rows.heads * rows.C;
}

/// The number of the calling thread's owners in the grid.
template <int kOwners>
__device__ inline int owner() {
  return static_cast<int>(blockIdx.x) * (kThreads / kOwners) + static_cast<int>(threadIdx.x) / kOwners;
}

constexpr int rows_at_once(int packs) { return packs >= 4 ? 1 : 4 / packs; }

/// The sum over the owners of each of kCount numbers a thread, in every thread. `sums` is memory that the last call did
/// not use.
template <int kOwners, int kCount>
__device__ inline void row_sums(float (&x)[kCount], float (*sums)[kWarps]) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
#pragma unroll
  for (int r = 0; r < kCount; ++r) {
    const float sum = warp_sum(x[r]);
    if (kOwners == kWarp) x[r] = sum;
    if (lane == 0) sums[r][warp] = sum;
  }
  if (kOwners == kWarp) return;
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kCount; ++r) {
    x[r] = sums[r][0];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) x[r] += sums[r][w];
  }
}

template <typename T, int kPacks, int kOwners>
__global__ void __launch_bounds__(kThreads)
    rms_norm_kernel(const T* __restrict__ x_NC, const T* __restrict__ weight_C, const T* __restrict__ past_NC,
                    T* __restrict__ y_NC, float* __restrict__ rstd_N, NormRows rows, float plus, float epsilon) {
  constexpr int kPack = Pack<T>::kSize, kRows = rows_at_once(kPacks);
  const int N = static_cast<int>(rows.N), C = static_cast<int>(rows.C);
  __shared__ float sums[kRows][kWarps];
  const int packs = C / kPack, lane = static_cast<int>(threadIdx.x) % kOwners, first = owner<kOwners>() * kRows;
  if (first >= N) return;
  Pack<T> x[kRows][kPacks];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int pack = i * kOwners + lane;
      if (first + r < N && pack < packs) x[r][i] = load(x_NC + begin_of(rows, first + r) + pack * kPack);
    }
  }
  float squares[kRows] = {};
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int pack = i * kOwners + lane;
      if (first + r < N && pack < packs) {
#pragma unroll
        for (int j = 0; j < kPack; ++j) squares[r] = fmaf(wide(x[r][i].value[j]), wide(x[r][i].value[j]), squares[r]);
      }
    }
  }
  row_sums<kOwners>(squares, sums);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (first + r >= N) break;
    const float rstd = rsqrtf(squares[r] / C + epsilon);
    const std::int64_t row = begin_of(rows, first + r);
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int pack = i * kOwners + lane;
      if (pack < packs) {
        const Pack<T> w = load(weight_C + pack * kPack);
        Pack<T> out, past;
        if (past_NC) past = load(past_NC + row + pack * kPack);
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          const float hat = wide(x[r][i].value[j]) * rstd, factor = wide(w.value[j]) + plus;
          out.value[j] = narrow<T>(past_NC ? fmaf(hat, factor, wide(past.value[j])) : hat * factor);
        }
        store(y_NC + row + pack * kPack, out);
      }
    }
    if (lane == 0) rstd_N[first + r] = rstd;
  }
}

constexpr int kTileRows = 32;  ///< of one row of partial sums of the weight's gradient

/// With kAhead the rows that come next travel into shared memory while those before them are computed.
template <typename T, int kPacks, int kOwners, bool kAhead>
__global__ void __launch_bounds__(kThreads, kPacks <= 2 ? 2 : 1)
    rms_norm_backward_kernel(const T* __restrict__ x_NC, const T* __restrict__ weight_C,
                             const float* __restrict__ rstd_N, const T* dy_NC, const T* __restrict__ past_NC, T* dx_NC,
                             T* __restrict__ y_NC, float* __restrict__ scratch, NormRows rows, float plus) {
  constexpr int kPack = Pack<T>::kSize, kRows = rows_at_once(kPacks);
  const int N = static_cast<int>(rows.N), C = static_cast<int>(rows.C);
  __shared__ float sums[2][kRows][kWarps];
  extern __shared__ __align__(16) unsigned char coming[];  // [2][kRows][operand][C]
  const int packs = C / kPack, lane = static_cast<int>(threadIdx.x) % kOwners, tile = owner<kOwners>();
  const auto place = [&](int stage, int r, int operand) {
    return reinterpret_cast<T*>(coming) + ((stage * kRows + r) * 3 + operand) * C;
  };
  Pack<T> weight[kPacks];
  float dweight[kPacks][kPack];
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int pack = i * kOwners + lane;
    if (pack < packs) weight[i] = load(weight_C + pack * kPack);
#pragma unroll
    for (int j = 0; j < kPack; ++j) dweight[i][j] = 0;
  }
  const int begin = tile * kTileRows, end = min(N, begin + kTileRows);
  if (begin >= N) return;
  int turn = 0;
  const auto ask = [&](int first, int stage) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t row = begin_of(rows, first + r);
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        const int at = (i * kOwners + lane) * kPack;
        if (first + r < end && at < C) {
          start_copy(place(stage, r, 0) + at, x_NC + row + at);
          start_copy(place(stage, r, 1) + at, dy_NC + row + at);
          if (past_NC) start_copy(place(stage, r, 2) + at, past_NC + row + at);
        }
      }
    }
    end_of_group();
  };
  if constexpr (kAhead) ask(begin, 0);
  for (int first = begin; first < end; first += kRows, turn ^= 1) {
    if constexpr (kAhead) {
      ask(first + kRows, turn ^ 1);
      wait_for_copies<1>();
    }
    Pack<T> x[kRows][kPacks], dy[kRows][kPacks], past[kRows][kPacks];
    float rstd[kRows], dots[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const bool inside = first + r < end;
      const std::int64_t row = begin_of(rows, first + r);
      const auto from = [&](const T* of_NC, int operand) { return kAhead ? place(turn, r, operand) : of_NC + row; };
      rstd[r] = inside ? rstd_N[first + r] : 0, dots[r] = 0;
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        const int pack = i * kOwners + lane;
        if (inside && pack < packs) {
          x[r][i] = load(from(x_NC, 0) + pack * kPack), dy[r][i] = load(from(dy_NC, 1) + pack * kPack);
          if (past_NC) past[r][i] = load(from(past_NC, 2) + pack * kPack);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        const int pack = i * kOwners + lane;
        if (first + r < end && pack < packs) {
#pragma unroll
          for (int j = 0; j < kPack; ++j) {
            const float hat = wide(x[r][i].value[j]) * rstd[r], d = wide(dy[r][i].value[j]);
            dots[r] = fmaf(d * (wide(weight[i].value[j]) + plus), hat, dots[r]);
            dweight[i][j] = fmaf(d, hat, dweight[i][j]);
          }
        }
      }
    }
    row_sums<kOwners>(dots, sums[turn]);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (first + r >= end) break;
      const float dot = dots[r] / C;
      const std::int64_t row = begin_of(rows, first + r);
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        const int pack = i * kOwners + lane;
        if (pack < packs) {
          Pack<T> dx, y;
#pragma unroll
          for (int j = 0; j < kPack; ++j) {
            const float hat = wide(x[r][i].value[j]) * rstd[r], w = wide(weight[i].value[j]) + plus;
            // fmaf, so that the compiler cannot choose whether to fuse.
            const float d = fmaf(wide(dy[r][i].value[j]), w, -hat * dot);
            dx.value[j] = narrow<T>(past_NC ? fmaf(d, rstd[r], wide(past[r][i].value[j])) : d * rstd[r]);
            y.value[j] = narrow<T>(hat * w);
          }
          store(dx_NC + row + pack * kPack, dx);
          if (y_NC) store(y_NC + row + pack * kPack, y);
        }
      }
    }
  }
  if (!scratch) return;
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int pack = i * kOwners + lane;
    if (pack < packs) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) scratch[static_cast<std::int64_t>(tile) * C + pack * kPack + j] = dweight[i][j];
    }
  }
}

constexpr int kMostPacks = 8;

/// Calls f with the number of packs of a row that each of its owners holds, and their number.
template <typename T, typename F>
void with_owners(std::int64_t C, F f) {
  using std::integral_constant;
  constexpr integral_constant<int, kThreads> block;
  const std::int64_t packs = tiles(C / Pack<T>::kSize, kThreads);
  if (C <= kWarp * Pack<T>::kSize) return f(integral_constant<int, 1>(), integral_constant<int, kWarp>());
  if (packs <= 1) return f(integral_constant<int, 1>(), block);
  if (packs <= 2) return f(integral_constant<int, 2>(), block);
  if (packs <= 4) return f(integral_constant<int, 4>(), block);
  if (packs <= kMostPacks) return f(integral_constant<int, kMostPacks>(), block);
  throw Error("a GPU's RMS norm takes rows of at most " + std::to_string(kMostPacks * kThreads * Pack<T>::kSize) +
              " elements, not " + std::to_string(C));
}

// ---- rotation -------------------------------------------------------------------------------------------------------
/// One block a row: its cosines and sines serve all its heads.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    rotate_kernel(T* __restrict__ x_NE, std::int64_t width, int heads, const float* __restrict__ cos_TR,
                  const float* __restrict__ sin_TR, int positions, int D, int R, float sign) {
  constexpr int kPack = Pack<T>::kSize;
  const int packs = R / kPack;
  const std::int64_t angle = static_cast<std::int64_t>(blockIdx.x % positions) * R;
  T* const row = x_NE + blockIdx.x * width;
  for (int i = threadIdx.x; i < heads * packs; i += kThreads) {
    const int r = i % packs * kPack;
    T* const a = row + static_cast<std::int64_t>(i / packs) * D + r;
    T* const b = a + R;
    const Pack<T> as = load(a), bs = load(b);
    Pack<T> turned_a, turned_b;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float c = cos_TR[angle + r + j], s = sin_TR[angle + r + j] * sign;
      const float x = wide(as.value[j]), y = wide(bs.value[j]);
      turned_a.value[j] = narrow<T>(x * c - y * s);
      turned_b.value[j] = narrow<T>(y * c + x * s);
    }
    store(a, turned_a);
    store(b, turned_b);
  }
}

// ---- gated activations ------------------------------------------------------------------------------------------
struct Value {
  float value, slope, rest;
};
/// The activation of x, and two factors of its derivative.
template <typename T, bool kGelu>
__device__ inline Value activation(float x) {
  if constexpr (kGelu) return {gelu_of<T>(x), gelu_slope<T>(x), 1};
  const float s = sigmoid<T>(x);
  return {x * s, s, 1 + x * (1 - s)};
}

/// A thread has one pack of row blockIdx.x.
template <typename T, bool kGelu>
__global__ void __launch_bounds__(kThreads) gated_kernel(const T* __restrict__ gate_up, T* __restrict__ y_NI, int I) {
  constexpr int kPack = Pack<T>::kSize;
  const int i = (blockIdx.y * kThreads + threadIdx.x) * kPack;
  if (i >= I) return;
  const std::int64_t row = blockIdx.x;
  const Pack<T> gate = load(gate_up + row * 2 * I + i), up = load(gate_up + row * 2 * I + I + i);
  Pack<T> y;
#pragma unroll
  for (int j = 0; j < kPack; ++j)
    y.value[j] = narrow<T>(activation<T, kGelu>(wide(gate.value[j])).value * wide(up.value[j]));
  store(y_NI + row * I + i, y);
}

/// dgate_up may be gate_up, and y_NI dy_NI.
template <typename T, bool kGelu>
__global__ void __launch_bounds__(kThreads)
    gated_backward_kernel(const T* gate_up, const T* dy_NI, T* dgate_up, T* y_NI, int I) {
  constexpr int kPack = Pack<T>::kSize;
  const int i = (blockIdx.y * kThreads + threadIdx.x) * kPack;
  if (i >= I) return;
  const std::int64_t row = blockIdx.x, gate_at = row * 2 * I + i, up_at = gate_at + I;
  const Pack<T> gate = load(gate_up + gate_at), up = load(gate_up + up_at), dy = load(dy_NI + row * I + i);
  Pack<T> dgate, dup, y;
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    const float u = wide(up.value[j]), d = wide(dy.value[j]);
    const Value activated = activation<T, kGelu>(wide(gate.value[j]));
    dgate.value[j] = narrow<T>(d * u * activated.slope * activated.rest);
    dup.value[j] = narrow<T>(d * activated.value);
    y.value[j] = narrow<T>(activated.value * u);
  }
  store(dgate_up + gate_at, dgate);
  store(dgate_up + up_at, dup);
  store(y_NI + row * I + i, y);
}

template <typename T>
dim3 inner_grid(std::int64_t N, std::int64_t I) {
  require_packs(I, sizeof(T));
  return {static_cast<unsigned>(N), static_cast<unsigned>(tiles(I, kThreads * Pack<T>::kSize))};
}

// ---- embedding ------------------------------------------------------------------------------------------------------
constexpr int kRowLanes = kThreads / kWarp, kRowsAtOnce = 4;

/// Blocks (i, y) add the rows of one token if its run begins at i, and do nothing otherwise; y selects the columns.
/// Each lane adds every kRowLanes-th row in order, with kRowsAtOnce requested at once, and the lanes are added in
/// order.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    add_rows_kernel(const std::int64_t* __restrict__ tokens_N, const std::int64_t* __restrict__ order_N,
                    const T* __restrict__ dy_NC, T* __restrict__ weight_VC, int N, int C) {
  constexpr int kPack = Pack<T>::kSize;
  __shared__ float sums[kRowLanes][kWarp * kPack];
  const int begin = blockIdx.x, c = (blockIdx.y * kWarp + threadIdx.x) * kPack;
  const std::int64_t token = tokens_N[begin];
  if (begin > 0 && tokens_N[begin - 1] == token) return;  // the whole block
  float sum[kPack] = {};
  for (int i = begin + threadIdx.y; i < N && tokens_N[i] == token; i += kRowLanes * kRowsAtOnce) {
    Pack<T> v[kRowsAtOnce];
    bool inside[kRowsAtOnce];
#pragma unroll
    for (int u = 0; u < kRowsAtOnce; ++u) {
      const int at = i + u * kRowLanes;
      inside[u] = at < N && tokens_N[at] == token && c < C;
      if (inside[u]) v[u] = load(dy_NC + order_N[at] * C + c);
    }
#pragma unroll
    for (int u = 0; u < kRowsAtOnce; ++u) {
      if (inside[u]) {
#pragma unroll
        for (int j = 0; j < kPack; ++j) sum[j] += wide(v[u].value[j]);
      }
    }
  }
#pragma unroll
  for (int j = 0; j < kPack; ++j) sums[threadIdx.y][j * kWarp + threadIdx.x] = sum[j];
  __syncthreads();
  if (threadIdx.y != 0 || c >= C) return;
  T* const to = weight_VC + token * C + c;
  Pack<T> v = load(to);
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    for (int lane = 1; lane < kRowLanes; ++lane) sum[j] += sums[lane][j * kWarp + threadIdx.x];
    // Rounded before it is added, as where autograd adds what a tied head and the embedding return.
    v.value[j] = narrow<T>(wide(v.value[j]) + wide(narrow<T>(sum[j])));
  }
  store(to, v);
}

}  // namespace

bool rms_norm_fits(std::int64_t C, std::size_t element) {
  return packs(C, element) && C * static_cast<std::int64_t>(element) <= kMostPacks * kThreads * 16;
}

template <typename T>
void rms_norm(const T* x_NC, const T* weight_C, const T* past_NC, T* y_NC, float* rstd_N, const NormRows& rows,
              float plus, float epsilon, cudaStream_t stream) {
  require_packs(rows.C, sizeof(T));
  require_packs(rows.ld, sizeof(T));
  with_owners<T>(rows.C, [&](auto packs, auto owners) {
    const std::int64_t each = rows_at_once(packs) * (kThreads / owners);
    rms_norm_kernel<T, packs, owners><<<static_cast<unsigned>(tiles(rows.N, each)), kThreads, 0, stream>>>(
        x_NC, weight_C, past_NC, y_NC, rstd_N, rows, plus, epsilon);
  });
  check("RMS norm");
}

std::int64_t rms_norm_backward_scratch(std::int64_t N, std::int64_t C) { return tiles(N, kTileRows) * C; }

template <typename T>
void rms_norm_backward(const T* x_NC, const T* weight_C, const float* rstd_N, const T* dy_NC, const T* past_NC,
                       T* dx_NC, T* y_NC, T* dweight_C, float* scratch, const NormRows& rows, float plus,
                       cudaStream_t stream) {
  require_packs(rows.C, sizeof(T));
  require_packs(rows.ld, sizeof(T));
  if (!dweight_C) scratch = nullptr;
  with_owners<T>(rows.C, [&](auto packs, auto owners) {
    const auto run = [&](auto kernel, std::int64_t shared) {
      if (shared > 0)
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
      const std::int64_t each = kTileRows * (kThreads / owners);
      kernel<<<static_cast<unsigned>(tiles(rows.N, each)), kThreads, static_cast<unsigned>(shared), stream>>>(
          x_NC, weight_C, rstd_N, dy_NC, past_NC, dx_NC, y_NC, scratch, rows, plus);
    };
    const std::int64_t bytes = 2 * rows_at_once(packs) * 3 * rows.C * static_cast<std::int64_t>(sizeof(T));
    constexpr bool kWhole = owners == kThreads;  // a warp's rows are few numbers, which need not travel ahead
    // Two blocks must fit into a processor's shared memory, each with 2048 bytes to spare.
    if (kWhole && 2 * (bytes + 2048) <= shared_memory())
      run(rms_norm_backward_kernel<T, packs, owners, kWhole>, bytes);
    else
      run(rms_norm_backward_kernel<T, packs, owners, false>, 0);
  });
  check("backward of RMS norm");
  if (dweight_C) add_tiles<T>(scratch, tiles(rows.N, kTileRows), dweight_C, nullptr, rows.C, stream);
}

bool rotate_fits(std::int64_t R, std::size_t element) { return packs(R, element); }

template <typename T>
void rotate(T* x_NE, std::int64_t width, std::int64_t heads, std::int64_t D, const float* cos_TR, const float* sin_TR,
            std::int64_t N, std::int64_t positions, std::int64_t R, bool back, cudaStream_t stream) {
  require_packs(R, sizeof(T));
  require_packs(D, sizeof(T));
  require_packs(width, sizeof(T));
  rotate_kernel<T><<<static_cast<unsigned>(N), kThreads, 0, stream>>>(
      x_NE, width, static_cast<int>(heads), cos_TR, sin_TR, static_cast<int>(positions), static_cast<int>(D),
      static_cast<int>(R), back ? -1.0F : 1.0F);
  check("rotation by positions");
}

template <typename T>
void gated(bool gelu, const T* gate_up, T* y_NI, std::int64_t N, std::int64_t I, cudaStream_t stream) {
  const auto kernel = gelu ? gated_kernel<T, true> : gated_kernel<T, false>;
  kernel<<<inner_grid<T>(N, I), kThreads, 0, stream>>>(gate_up, y_NI, static_cast<int>(I));
  check("gated activation");
}

template <typename T>
void gated_backward(bool gelu, const T* gate_up, const T* dy_NI, T* dgate_up, T* y_NI, std::int64_t N, std::int64_t I,
                    cudaStream_t stream) {
  const auto kernel = gelu ? gated_backward_kernel<T, true> : gated_backward_kernel<T, false>;
  kernel<<<inner_grid<T>(N, I), kThreads, 0, stream>>>(gate_up, dy_NI, dgate_up, y_NI, static_cast<int>(I));
  check("backward of a gated activation");
}

template <typename T>
void add_rows(const std::int64_t* tokens_N, const std::int64_t* order_N, const T* dy_NC, T* weight_VC, std::int64_t N,
              std::int64_t C, cudaStream_t stream) {
  require_packs(C, sizeof(T));
  if (N == 0) return;
  const dim3 grid(static_cast<unsigned>(N), static_cast<unsigned>(tiles(C, kWarp * Pack<T>::kSize)));
  add_rows_kernel<T><<<grid, dim3(kWarp, kRowLanes), 0, stream>>>(tokens_N, order_N, dy_NC, weight_VC,
                                                                  static_cast<int>(N), static_cast<int>(C));
  check("gradient of the embedding");
}

#define ZS_FOR(T)                                                                                                   \
  template void rms_norm<T>(const T*, const T*, const T*, T*, float*, const NormRows&, float, float, cudaStream_t); \
  template void rms_norm_backward<T>(const T*, const T*, const float*, const T*, const T*, T*, T*, T*, float*,      \
                                     const NormRows&, float, cudaStream_t);                                         \
  template void rotate<T>(T*, std::int64_t, std::int64_t, std::int64_t, const float*, const float*, std::int64_t,   \
                          std::int64_t, std::int64_t, bool, cudaStream_t);                                          \
  template void gated<T>(bool, const T*, T*, std::int64_t, std::int64_t, cudaStream_t);                             \
  template void gated_backward<T>(bool, const T*, const T*, T*, T*, std::int64_t, std::int64_t, cudaStream_t);      \
  template void add_rows<T>(const std::int64_t*, const std::int64_t*, const T*, T*, std::int64_t, std::int64_t,     \
                            cudaStream_t)
ZS_FOR(float);
ZS_FOR(__nv_bfloat16);
#undef ZS_FOR

}  // namespace zs::kernel::cuda
