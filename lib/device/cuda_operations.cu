// SPDX-License-Identifier: Apache-2.0
// A GPU's operations: the arithmetic of arithmetic.hpp, one element a thread, so that the bits are the host's. Compiled
// with -fmad=false: which products are fused is spelt out there.
#include <algorithm>
#include <array>
#include <string>

#include "base/error.hpp"
#include "device/cuda.hpp"

namespace zs::device::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMost = 64;  ///< leaves of one kernel

unsigned blocks(std::int64_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }

struct Leaves {
  const void* at[kMost];
};

template <int kLeaves, typename T>
__global__ void tree_kernel(Leaves leaves, float* out, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) out[i] = node<kLeaves>(reinterpret_cast<const T* const*>(leaves.at), i);
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
  const auto run = [&](auto kernel) { kernel<<<blocks(out.count), kThreads, 0, stream()>>>(leaves, to, out.count); };
  switch (count) {
    case 1:
      run(tree_kernel<1, T>);
      break;
    case 2:
      run(tree_kernel<2, T>);
      break;
    case 4:
      run(tree_kernel<4, T>);
      break;
    case 8:
      run(tree_kernel<8, T>);
      break;
    case 16:
      run(tree_kernel<16, T>);
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

__global__ void adamw_kernel(AdamWFactors factors, float* parameters, float* exp_avg, float* exp_avg_sq,
                             const float* gradient_sum, float scale, float clip, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) adamw(factors, gradient_sum[i] * scale * clip, parameters[i], exp_avg[i], exp_avg_sq[i]);
}

float* floats(const View& view) { return reinterpret_cast<float*>(view.data); }

void update(const AdamWFactors& factors, const AdamWViews& v, float scale, float clip) {
  if (v.parameters.count == 0) return;
  adamw_kernel<<<blocks(v.parameters.count), kThreads, 0, stream()>>>(factors, floats(v.parameters), floats(v.exp_avg),
                                                                      floats(v.exp_avg_sq), floats(v.gradient_sum),
                                                                      scale, clip, v.parameters.count);
  check(cudaGetLastError(), "AdamW");
}

struct Tile {
  const float* values;
  std::int64_t count;
};

/// One block a tile, one thread a lane; the lanes are added by halves, as lanes_sum() of arithmetic.hpp does.
__global__ void squares_kernel(const Tile* tiles, double* sums) {
  __shared__ double lanes[kLanes];
  const Tile tile = tiles[blockIdx.x];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < tile.count; i += kLanes) sum += square(tile.values[i]);
  lanes[threadIdx.x] = sum;
  for (int half = kLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) lanes[threadIdx.x] += lanes[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = lanes[0];
}

std::vector<double> sums_of_squares(std::span<const View> views) {
  std::vector<double> sums(views.size());
  if (views.empty()) return sums;
  std::vector<Tile> tiles;
  for (const View& view : views) tiles.push_back({floats(view), view.count});
  const auto bytes = [](const auto& of) { return of.size() * sizeof(of[0]); };
  const Buffer memory = cuda::allocate(views[0].device, static_cast<std::int64_t>(bytes(tiles) + bytes(sums)));
  auto* const on_device = reinterpret_cast<double*>(memory.data() + bytes(tiles));
  check(cudaMemcpyAsync(memory.data(), tiles.data(), bytes(tiles), cudaMemcpyHostToDevice, stream()), "gradient norm");
  squares_kernel<<<static_cast<unsigned>(tiles.size()), kLanes, 0, stream()>>>(
      reinterpret_cast<const Tile*>(memory.data()), on_device);
  check(cudaGetLastError(), "gradient norm");
  check(cudaMemcpyAsync(sums.data(), on_device, bytes(sums), cudaMemcpyDeviceToHost, stream()), "gradient norm");
  check(cudaStreamSynchronize(stream()), "gradient norm");
  return sums;
}

}  // namespace

const Operations& operations() {
  static constexpr Operations table = {tree_sum, carry, update, sums_of_squares};
  return table;
}

}  // namespace zs::device::cuda
