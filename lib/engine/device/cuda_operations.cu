// SPDX-License-Identifier: Apache-2.0
// A GPU's operations: the arithmetic of arithmetic.hpp, one element a thread, so that the bits are the host's. Compiled
// with -fmad=false: which products are fused is spelt out there.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "base/error.hpp"
#include "device/coded.hpp"
#include "device/cuda.hpp"
#include "device/cuda_e4m3.hpp"

namespace zs::device::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMost = 64;  ///< leaves of one kernel

unsigned blocks(std::int64_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }

/// Whether 16 bytes may be moved from here at once.
bool aligned(const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; }

struct Leaves {
  const void* at[kMost];
};

template <int kLeaves, typename T>
__global__ void tree_kernel(Leaves leaves, float* out, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) out[i] = node<kLeaves>(reinterpret_cast<const T* const*>(leaves.at), i);
}

/// A multiple of 4 elements, 4 for each thread: enough bytes in flight for the bandwidth of memory. REQUIRES: leaves
/// and `out` begin at multiples of 16 bytes.
template <int kLeaves, typename T>
__global__ void tree_by_4_kernel(Leaves leaves, float4* out, std::int64_t quads) {
  struct alignas(4 * sizeof(T)) Quad {
    T value[4];
  };
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= quads) return;
  Quad mine[kLeaves];
#pragma unroll
  for (int leaf = 0; leaf < kLeaves; ++leaf) mine[leaf] = static_cast<const Quad*>(leaves.at[leaf])[i];
  const T* numbers[kLeaves];
#pragma unroll
  for (int leaf = 0; leaf < kLeaves; ++leaf) numbers[leaf] = mine[leaf].value;
  out[i] = {node<kLeaves>(numbers, 0), node<kLeaves>(numbers, 1), node<kLeaves>(numbers, 2), node<kLeaves>(numbers, 3)};
}

/// Any number of leaves: a binary counter of partial sums, which merge as the tree does.
template <typename T>
__global__ void counter_kernel(Leaves leaves, int count, float* out, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  float partial[8];  // one for each one bit of the leaves so far, highest first
  int partials = 0;
  for (int leaf = 0; leaf < count; ++leaf) {
    float sum = widen(static_cast<const T*>(leaves.at[leaf])[i]);
    for (int bits = leaf; bits & 1; bits >>= 1) sum = partial[--partials] + sum;
    partial[partials++] = sum;
  }
  float sum = partial[--partials];
  while (partials > 0) sum = partial[--partials] + sum;
  out[i] = sum;
}

template <typename T>
void tree(std::span<const View> views, const View& out) {
  Leaves leaves{};
  const int count = static_cast<int>(views.size());
  if (count > kMost)
    throw Error("a GPU adds at most " + std::to_string(kMost) + " leaves at once, not " + std::to_string(count));
  for (int i = 0; i < count; ++i) leaves.at[i] = views[static_cast<std::size_t>(i)].data;
  auto* const to = reinterpret_cast<float*>(out.data);
  // By fours where every operand allows it, and what is left one by one; each element has the same sum either way.
  bool whole = aligned(to);
  for (int i = 0; i < count; ++i) whole = whole && aligned(leaves.at[i]);
  const auto run = [&]<int kLeaves>(std::integral_constant<int, kLeaves>) {
    const std::int64_t quads = whole ? out.count / 4 : 0, done = quads * 4;
    if (quads > 0)
      tree_by_4_kernel<kLeaves, T>
          <<<blocks(quads), kThreads, 0, stream()>>>(leaves, reinterpret_cast<float4*>(to), quads);
    if (done == out.count) return;
    Leaves rest = leaves;
    for (int i = 0; i < kLeaves; ++i) rest.at[i] = static_cast<const T*>(leaves.at[i]) + done;
    tree_kernel<kLeaves, T><<<blocks(out.count - done), kThreads, 0, stream()>>>(rest, to + done, out.count - done);
  };
  switch (count) {
    case 1:
      run(std::integral_constant<int, 1>());
      break;
    case 2:
      run(std::integral_constant<int, 2>());
      break;
    case 4:
      run(std::integral_constant<int, 4>());
      break;
    case 8:
      run(std::integral_constant<int, 8>());
      break;
    case 16:
      run(std::integral_constant<int, 16>());
      break;
    default:
      counter_kernel<T><<<blocks(out.count), kThreads, 0, stream()>>>(leaves, count, to, out.count);
  }
  check(cudaGetLastError(), "tree sum");
}

void tree_sum(std::span<const View> leaves, const View& out) {
  if (out.count == 0) return;
  switch (leaves[0].type) {
    case Type::bfloat16:
      return tree<Bfloat16>(leaves, out);
    case Type::float16:
      return tree<Float16>(leaves, out);
    default:
      return tree<float>(leaves, out);
  }
}

/// levels[0] += ... += levels[count - 1] += leaf, as one pass over memory.
template <typename T>
__global__ void carry_kernel(Leaves levels, int count, const T* leaf, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  float right = widen(leaf[i]);
  for (int level = count; level-- > 0;) {
    auto* const left = static_cast<float*>(const_cast<void*>(levels.at[level])) + i;
    right = *left = *left + right;
  }
}

void carry(std::span<const View> views, const View& leaf) {
  if (leaf.count == 0) return;
  Leaves levels{};
  for (std::size_t i = 0; i < views.size(); ++i) levels.at[i] = views[i].data;
  const auto run = [&](auto type) {
    using T = decltype(type);
    carry_kernel<T><<<blocks(leaf.count), kThreads, 0, stream()>>>(levels, static_cast<int>(views.size()),
                                                                   reinterpret_cast<const T*>(leaf.data), leaf.count);
  };
  switch (leaf.type) {
    case Type::bfloat16:
      run(Bfloat16{});
      break;
    case Type::float16:
      run(Float16{});
      break;
    default:
      run(float{});
  }
  check(cudaGetLastError(), "sum of micro-steps");
}

/// Also stores an updated parameter, rounded, unless `to` is null.
__device__ void put_rounded(Bfloat16* to, std::int64_t i, float parameter) {
  if (to) to[i] = to_bfloat16(parameter);
}

template <typename F, typename G>
__global__ void update_kernel(F factors, float* parameters, float* first, float* second, const G* gradient_sum,
                              Bfloat16* rounded, float scale, float clip, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  update(factors, widen(gradient_sum[i]) * scale * clip, parameters[i], first + i, second + i);
  put_rounded(rounded, i, parameters[i]);
}

template <typename G>
struct alignas(4 * sizeof(G)) Quad {
  G value[4];
};

/// 4 elements a thread. REQUIRES: all begin at multiples of 16 bytes.
template <typename F, typename G>
__global__ void update_by_4_kernel(F factors, float4* parameters, float4* first, float4* second,
                                   const Quad<G>* gradient_sum, Quad<Bfloat16>* rounded, float scale, float clip,
                                   std::int64_t quads) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= quads) return;
  float4 p = parameters[i], m{}, v{};
  if constexpr (F::kStates > 0) m = first[i];
  if constexpr (F::kStates > 1) v = second[i];
  const Quad<G> g = gradient_sum[i];
  update(factors, widen(g.value[0]) * scale * clip, p.x, &m.x, &v.x);
  update(factors, widen(g.value[1]) * scale * clip, p.y, &m.y, &v.y);
  update(factors, widen(g.value[2]) * scale * clip, p.z, &m.z, &v.z);
  update(factors, widen(g.value[3]) * scale * clip, p.w, &m.w, &v.w);
  parameters[i] = p;
  if constexpr (F::kStates > 0) first[i] = m;
  if constexpr (F::kStates > 1) second[i] = v;
  if (rounded) rounded[i] = {{to_bfloat16(p.x), to_bfloat16(p.y), to_bfloat16(p.z), to_bfloat16(p.w)}};
}

template <typename G>
__global__ void direction_kernel(DirectionFactors factors, float* momentum, const G* gradient_sum, Bfloat16* to,
                                 float scale, float clip, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  to[i] = to_bfloat16(direction(factors, widen(gradient_sum[i]) * scale * clip, momentum[i]));
}

float* floats(const View& view) { return reinterpret_cast<float*>(view.data); }

/// Calls f with a number of a type: float32, or 16 bits.
template <typename F>
void with_type(Type type, F f) {
  switch (type) {
    case Type::bfloat16:
      return f(Bfloat16{});
    case Type::float16:
      return f(Float16{});
    default:
      return f(float{});
  }
}

template <typename F>
void update_by(const F& factors, const UpdateViews& v, float scale, float clip) {
  const auto at = [](const View& view) { return view.count > 0 ? floats(view) : nullptr; };
  float *const p = at(v.parameters), *const m = at(v.first), *const s = at(v.second);
  with_type(v.gradient_sum.type, [&](auto number) {
    using G = decltype(number);
    const auto* const g = reinterpret_cast<const G*>(v.gradient_sum.data);
    auto* const r = v.rounded.count > 0 ? reinterpret_cast<Bfloat16*>(v.rounded.data) : nullptr;
    const bool whole = aligned(p) && aligned(m) && aligned(s) && aligned(g) && aligned(r);
    const std::int64_t count = v.parameters.count, quads = whole ? count / 4 : 0, done = quads * 4;
    const auto by_4 = [](float* at) { return reinterpret_cast<float4*>(at); };
    const auto rest = [&](float* moment) { return moment ? moment + done : nullptr; };
    if (quads > 0)
      update_by_4_kernel<F, G><<<blocks(quads), kThreads, 0, stream()>>>(
          factors, by_4(p), by_4(m), by_4(s), reinterpret_cast<const Quad<G>*>(g), reinterpret_cast<Quad<Bfloat16>*>(r),
          scale, clip, quads);
    if (done < count)
      update_kernel<F, G><<<blocks(count - done), kThreads, 0, stream()>>>(
          factors, p + done, rest(m), rest(s), g + done, r ? r + done : nullptr, scale, clip, count - done);
  });
  check(cudaGetLastError(), "update");
}

void update_on_gpu(const Rule& rule, const UpdateViews& views, float scale, float clip) {
  std::visit([&](const auto& factors) { update_by(factors, views, scale, clip); }, rule);
}

void direction_on_gpu(const DirectionFactors& factors, const View& momentum, const View& gradient_sum, const View& to,
                      float scale, float clip) {
  if (momentum.count == 0) return;
  with_type(gradient_sum.type, [&](auto number) {
    using G = decltype(number);
    direction_kernel<G><<<blocks(momentum.count), kThreads, 0, stream()>>>(
        factors, floats(momentum), reinterpret_cast<const G*>(gradient_sum.data), reinterpret_cast<Bfloat16*>(to.data),
        scale, clip, momentum.count);
  });
  check(cudaGetLastError(), "direction of Muon");
}

/// Both tables of codes, as an argument of a kernel.
struct CodeTables {
  float codes[2][kCodedBlock];
};
const CodeTables& code_tables() {
  static const CodeTables tables = [] {
    CodeTables made{};
    std::copy(kSignedCodes.begin(), kSignedCodes.end(), made.codes[0]);
    std::copy(kUnsignedCodes.begin(), kUnsignedCodes.end(), made.codes[1]);
    return made;
  }();
  return tables;
}

struct CodedPointers {
  std::uint8_t* codes;
  float *scales, *next;
  const float* values;
};
/// A table in shared memory. A number of each 32 is left out, so that a search meets no bank twice.
struct SharedTable {
  float* entries;
  __device__ float& operator[](int i) const { return entries[i + i / 32]; }
};
__device__ float decoded(const CodedPointers& moment, const SharedTable& table, std::int64_t block, std::int64_t i) {
  return moment.values ? moment.values[i] : table[moment.codes[i]] * moment.scales[block];
}

/// The task of a kernel: it finds the scales, updates by given scales, or does both.
enum class Coded { scales, update, both };

/// A group of threads takes every gridDim.x-th block of 256 elements, a thread an element.
template <typename G, Coded kDoes>
__global__ void __launch_bounds__(kCodedBlock)
    coded_kernel(AdamWFactors factors, CodeTables tables, CodedPointers first, CodedPointers second, float* parameters,
                 const G* gradient_sum, Bfloat16* rounded, std::int64_t offset, float scale, float clip, std::int64_t n,
                 std::int64_t blocks) {
  constexpr int kWarp = 32, kWarps = kCodedBlock / kWarp;
  __shared__ float of_table[2][kCodedBlock + kCodedBlock / 32];
  __shared__ std::uint32_t most[2][kWarps];
  const SharedTable table[] = {{of_table[0]}, {of_table[1]}};
  const int t = static_cast<int>(threadIdx.x);
  table[0][t] = tables.codes[0][t], table[1][t] = tables.codes[1][t];
  __syncthreads();
  for (std::int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const std::int64_t i = (offset / kCodedBlock + block) * kCodedBlock + t - offset;
    const bool here = i >= 0 && i < n;
    float p = 0, m = 0, v = 0;
    if (here) {
      p = parameters[i], m = decoded(first, table[0], block, i), v = decoded(second, table[1], block, i);
      adamw(factors, widen(gradient_sum[i]) * scale * clip, p, m, v);
    }
    float scales[2];
    if constexpr (kDoes == Coded::update) {
      scales[0] = first.next[block], scales[1] = second.next[block];
    } else {
      const std::uint32_t of_warp[] = {__reduce_max_sync(0xffffffffU, here ? magnitude(m) : 0u),
                                       __reduce_max_sync(0xffffffffU, here ? magnitude(v) : 0u)};
      if (t % kWarp == 0) most[0][t / kWarp] = of_warp[0], most[1][t / kWarp] = of_warp[1];
      __syncthreads();
      for (int k = 0; k < 2; ++k) {
        std::uint32_t largest = 0;
        for (int warp = 0; warp < kWarps; ++warp) largest = max(largest, most[k][warp]);
        scales[k] = __uint_as_float(largest);
      }
    }
    if constexpr (kDoes != Coded::scales) {
      if (here) {
        parameters[i] = p;
        put_rounded(rounded, i, p);
        first.codes[i] = code_of(table[0], m, scales[0]);
        second.codes[i] = code_of(table[1], v, scales[1]);
      }
    }
    __syncthreads();
    if (t != 0) continue;
    (kDoes == Coded::scales ? first.next : first.scales)[block] = scales[0];
    (kDoes == Coded::scales ? second.next : second.scales)[block] = scales[1];
  }
}

template <Coded kDoes>
void coded(const AdamWFactors& factors, const CodedViews& v) {
  const std::int64_t blocks = coded_blocks(v.offset, v.parameters.count);
  if (blocks == 0) return;
  const auto pointers = [](const CodedMoment& moment) {
    return CodedPointers{reinterpret_cast<std::uint8_t*>(moment.codes.data), floats(moment.scales),
                         moment.next.count > 0 ? floats(moment.next) : nullptr,
                         moment.values.count > 0 ? floats(moment.values) : nullptr};
  };
  constexpr std::int64_t kMostGroups = 132 * 8;  // no bit depends on it
  with_type(v.gradient_sum.type, [&](auto number) {
    using G = decltype(number);
    coded_kernel<G, kDoes><<<static_cast<unsigned>(std::min(blocks, kMostGroups)), kCodedBlock, 0, stream()>>>(
        factors, code_tables(), pointers(v.moments[0]), pointers(v.moments[1]), floats(v.parameters),
        reinterpret_cast<const G*>(v.gradient_sum.data),
        v.rounded.count > 0 ? reinterpret_cast<Bfloat16*>(v.rounded.data) : nullptr, v.offset, v.scale, v.clip,
        v.parameters.count, blocks);
  });
  check(cudaGetLastError(), "update of 8-bit AdamW");
}
void coded_update_on_gpu(const AdamWFactors& factors, const CodedViews& views) {
  (views.moments[0].next.count > 0 ? coded<Coded::update> : coded<Coded::both>)(factors, views);
}

struct Tile {
  const void* values;
  std::int64_t count;
  Type type;
};

template <typename T>
__device__ double lane_of_squares(const Tile& tile) {
  const auto* const values = static_cast<const T*>(tile.values);
  double sum = 0;
#pragma unroll 8
  for (std::int64_t i = threadIdx.x; i < tile.count; i += kLanes) sum += square(widen(values[i]));
  return sum;
}

/// For a block of kLanes threads, each with a number: their sum, in thread 0, added by halves as in lanes_sum() of
/// arithmetic.hpp.
template <typename T>
__device__ T sum_of_block(T mine) {
  __shared__ T lanes[kLanes];
  lanes[threadIdx.x] = mine;
  for (int half = kLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) lanes[threadIdx.x] += lanes[threadIdx.x + half];
  }
  return lanes[0];
}

/// One block a tile, one thread a lane.
__global__ void squares_kernel(const Tile* tiles, double* sums) {
  __shared__ Tile tile;
  if (threadIdx.x == 0) tile = tiles[blockIdx.x];
  __syncthreads();
  const double sum = sum_of_block(tile.type == Type::bfloat16  ? lane_of_squares<Bfloat16>(tile)
                                  : tile.type == Type::float16 ? lane_of_squares<Float16>(tile)
                                                               : lane_of_squares<float>(tile));
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// Memory of the host that kernels read and write directly: a copy would wait for copies of offloaded state, which
/// occupy the bus for milliseconds.
std::byte* reached_by_kernels(std::size_t bytes) {
  static thread_local void* memory = nullptr;
  static thread_local std::size_t size = 0;
  if (bytes > size) {
    check(cudaFreeHost(memory), "memory of the host");
    memory = nullptr, size = 0;
    check(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped), "memory of the host");
    size = bytes;
  }
  return static_cast<std::byte*>(memory);
}

std::vector<double> sums_of_squares(std::span<const View> views) {
  if (views.empty()) return {};
  auto* const tiles = reinterpret_cast<Tile*>(reached_by_kernels(views.size() * (sizeof(Tile) + sizeof(double))));
  auto* const sums = reinterpret_cast<double*>(tiles + views.size());
  for (std::size_t i = 0; i < views.size(); ++i) tiles[i] = {views[i].data, views[i].count, views[i].type};
  squares_kernel<<<static_cast<unsigned>(views.size()), kLanes, 0, stream()>>>(tiles, sums);
  check(cudaGetLastError(), "gradient norm");
  check(cudaStreamSynchronize(stream()), "gradient norm");
  return {sums, sums + views.size()};
}

/// Elements of a view for one block, from `first` on.
struct Piece {
  const void* values;
  std::int64_t count;
  std::uint32_t first;
  bool wide;  // of 32 bits, else of 16
};

__global__ void fingerprint_kernel(const Piece* pieces, std::uint64_t* sums) {
  __shared__ Piece piece;
  if (threadIdx.x == 0) piece = pieces[blockIdx.x];
  __syncthreads();
  std::uint64_t sum = 0;
#pragma unroll 8
  for (std::int64_t i = threadIdx.x; i < piece.count; i += kLanes) {
    const std::uint32_t index = piece.first + static_cast<std::uint32_t>(i);
    sum += piece.wide ? imprint(static_cast<const std::uint32_t*>(piece.values)[i], kMagnitude32, index)
                      : imprint(static_cast<const std::uint16_t*>(piece.values)[i], kMagnitude16, index);
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

std::vector<std::uint64_t> fingerprints_on_gpu(std::span<const View> views) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  std::vector<Piece> pieces;
  std::vector<std::size_t> view_of;  // the view of each
  for (std::size_t v = 0; v < views.size(); ++v) {
    for (std::int64_t begin = 0; begin < views[v].count; begin += kPiece) {
      const View part = views[v].part(begin, std::min(begin + kPiece, views[v].count));
      pieces.push_back({part.data, part.count, static_cast<std::uint32_t>(begin), size(part.type) == 4});
      view_of.push_back(v);
    }
  }
  std::vector<std::uint64_t> made(views.size());
  if (pieces.empty()) return made;
  auto* const sums =
      reinterpret_cast<std::uint64_t*>(reached_by_kernels(pieces.size() * (sizeof(Piece) + sizeof(std::uint64_t))));
  auto* const copies = reinterpret_cast<Piece*>(sums + pieces.size());
  std::copy(pieces.begin(), pieces.end(), copies);
  fingerprint_kernel<<<static_cast<unsigned>(pieces.size()), kLanes, 0, stream()>>>(copies, sums);
  check(cudaGetLastError(), "fingerprint");
  check(cudaStreamSynchronize(stream()), "fingerprint");
  for (std::size_t i = 0; i < pieces.size(); ++i) made[view_of[i]] += sums[i];
  return made;
}

}  // namespace

const Operations& operations_here() {
  static constexpr Operations table = {
      tree_sum, carry, update_on_gpu, direction_on_gpu, coded<Coded::scales>, coded_update_on_gpu, to_e4m3_on_gpu, from_e4m3_on_gpu, sums_of_squares, fingerprints_on_gpu};
  return table;
}

}  // namespace zs::device::cuda
