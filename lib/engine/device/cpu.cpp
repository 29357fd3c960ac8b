// SPDX-License-Identifier: Apache-2.0
// The host's operations. Each loop is compiled for several instruction sets, and the machine's widest runs; all have
// the same bits, since nothing is reordered or contracted (the Makefile's -ffp-contract=off).
#include <ATen/Parallel.h>

#include <algorithm>

#include "base/vectorised.hpp"
#include "device/backend.hpp"
#include "device/coded.hpp"
#include "device/operations.hpp"

// A product and its sum are one instruction here if arithmetic.hpp says so, which needs the FMA of x86-64-v3. The names
// are x86-64 levels: for the name of a processor GCC offers the clone only to processors of that maker.
#if defined(__x86_64__)
#define ZS_VECTORISED_FMA __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define ZS_VECTORISED_FMA
#endif

namespace zs::device {
namespace {

constexpr std::int64_t kBlock = 2048;  // floats; 8 KiB, so that the blocks of a chain of merges stay in the first cache
constexpr int kUnrolled = 8;           // leaves that one loop adds in registers

/// Calls compute(begin, size) for the blocks of `count` numbers, on all threads: no bit may depend on the order.
template <typename Compute>
void each_block(std::int64_t count, const Compute& compute) {
  in_parts((count + kBlock - 1) / kBlock, /*least=*/16, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t begin = first * kBlock; begin < std::min(count, last * kBlock); begin += kBlock)
      compute(begin, std::min(kBlock, count - begin));
  });
}

template <int kLeaves, typename T>
[[gnu::always_inline]] inline void add_up(const T* const* leaves, float* out, std::int64_t n) {
  const T* local[kLeaves];  // a copy, so that stores to `out` cannot change the pointers
  std::copy_n(leaves, kLeaves, local);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = node<kLeaves>(local, i);
}

template <typename T>
[[gnu::always_inline]] inline void add_leaves(const T* const* leaves, int count, float* out, std::int64_t n) {
  switch (count) {
    case 1:
      return add_up<1>(leaves, out, n);
    case 2:
      return add_up<2>(leaves, out, n);
    case 3:
      return add_up<3>(leaves, out, n);
    case 4:
      return add_up<4>(leaves, out, n);
    case 5:
      return add_up<5>(leaves, out, n);
    case 6:
      return add_up<6>(leaves, out, n);
    case 7:
      return add_up<7>(leaves, out, n);
    default:
      return add_up<kUnrolled>(leaves, out, n);
  }
}

// GCC does not clone templates.
ZS_VECTORISED void add_few(const float* const* leaves, int count, float* out, std::int64_t n) {
  add_leaves(leaves, count, out, n);
}
ZS_VECTORISED void add_few(const Bfloat16* const* leaves, int count, float* out, std::int64_t n) {
  add_leaves(leaves, count, out, n);
}
ZS_VECTORISED void add_few(const Float16* const* leaves, int count, float* out, std::int64_t n) {
  add_leaves(leaves, count, out, n);
}

// The tree over leaves[0, count) at one block; `out` overlaps no leaf.
template <typename T>
void add_block(const T* const* leaves, int count, float* out, std::int64_t n) {
  if (count <= kUnrolled) return add_few(leaves, count, out, n);
  const int left = left_leaves(count);
  add_block(leaves, left, out, n);
  alignas(64) float right[kBlock];
  add_block(leaves + left, count - left, right, n);
  const float* halves[] = {out, right};
  add_few(halves, 2, out, n);
}

template <typename T>
void add_all(std::span<const View> leaves, const View& out) {
  each_block(out.count, [&](std::int64_t begin, std::int64_t size) {
    std::vector<const T*> block;
    for (const View& leaf : leaves) block.push_back(leaf.as<const T>() + begin);
    alignas(64) float sum[kBlock];
    const int count = static_cast<int>(block.size());
    if (count <= kUnrolled) return add_few(block.data(), count, out.as<float>() + begin, size);
    add_block(block.data(), count, sum, size);
    std::copy_n(sum, size, out.as<float>() + begin);
  });
}

void tree_sum_on_cpu(std::span<const View> leaves, const View& out) {
  switch (leaves[0].type) {
    case Type::bfloat16:
      return add_all<Bfloat16>(leaves, out);
    case Type::float16:
      return add_all<Float16>(leaves, out);
    default:
      return add_all<float>(leaves, out);
  }
}

void carry(std::span<const View> levels, const View& leaf) {
  each_block(leaf.count, [&](std::int64_t begin, std::int64_t size) {
    alignas(64) float wide[kBlock];
    View right = leaf.part(begin, begin + size);
    if (right.type != Type::float32) {
      tree_sum_on_cpu({&right, 1}, view(wide, size));
      right = view(wide, size);
    }
    for (std::size_t level = levels.size(); level-- > 0;) {
      const View left = levels[level].part(begin, begin + size);
      const float* both[] = {left.as<float>(), right.as<float>()};
      add_few(both, 2, left.as<float>(), size);
      right = left;
    }
  });
}

/// The values that a rule updates in one block.
struct Block {
  float* __restrict parameters, * __restrict first, * __restrict second;
  const float* __restrict gradient_sum;
  float scale, clip;
  std::int64_t n;
};
template <typename F>
[[gnu::always_inline]] inline void update_all(const F& f, const Block& b) {
  float* __restrict const parameters = b.parameters, * __restrict const first = b.first, * __restrict const second = b.second;
  const float* __restrict const gradient_sum = b.gradient_sum;
  const float scale = b.scale, clip = b.clip;
  for (std::int64_t i = 0; i < b.n; ++i)
    update(f, gradient_sum[i] * scale * clip, parameters[i], first + i, second + i);
}
// GCC does not clone templates.
ZS_VECTORISED_FMA void update_block(const AdamWFactors& f, const Block& b) { update_all(f, b); }
ZS_VECTORISED_FMA void update_block(const AdamFactors& f, const Block& b) { update_all(f, b); }
ZS_VECTORISED_FMA void update_block(const SgdFactors& f, const Block& b) { update_all(f, b); }
ZS_VECTORISED_FMA void update_block(const MomentumFactors& f, const Block& b) { update_all(f, b); }
ZS_VECTORISED_FMA void update_block(const LionFactors& f, const Block& b) { update_all(f, b); }
ZS_VECTORISED_FMA void update_block(const MatrixStepFactors& f, const Block& b) { update_all(f, b); }

ZS_VECTORISED_FMA void direct_block(const DirectionFactors& f, float* __restrict momentum,
                                    const float* __restrict gradient_sum, float* __restrict to, float scale, float clip,
                                    std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = direction(f, gradient_sum[i] * scale * clip, momentum[i]);
}

ZS_VECTORISED void round_all(const float* __restrict from, Bfloat16* __restrict to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = to_bfloat16(from[i]);
}

/// A part of some numbers as float32: where they are, or widened into `wide`.
const float* floats(const View& numbers, std::int64_t begin, std::int64_t size, float* wide) {
  if (numbers.type == Type::float32) return numbers.as<float>() + begin;
  const View part = numbers.part(begin, begin + size);
  tree_sum_on_cpu({&part, 1}, view(wide, size));
  return wide;
}

void update_on_cpu(const Rule& rule, const UpdateViews& v, float scale, float clip) {
  each_block(v.parameters.count, [&](std::int64_t begin, std::int64_t size) {
    alignas(64) float wide[kBlock];
    const auto at = [&](const View& view) { return view.count > 0 ? view.as<float>() + begin : nullptr; };
    const Block block{
        at(v.parameters), at(v.first), at(v.second), floats(v.gradient_sum, begin, size, wide), scale, clip, size};
    std::visit([&](const auto& factors) { update_block(factors, block); }, rule);
    if (v.rounded.count > 0) round_all(at(v.parameters), v.rounded.as<Bfloat16>() + begin, size);
  });
}

void direction_on_cpu(const DirectionFactors& factors, const View& momentum, const View& gradient_sum, const View& to,
                      float scale, float clip) {
  each_block(momentum.count, [&](std::int64_t begin, std::int64_t size) {
    alignas(64) float wide[kBlock], directions[kBlock];
    direct_block(factors, momentum.as<float>() + begin, floats(gradient_sum, begin, size, wide), directions, scale,
                 clip, size);
    round_all(directions, to.as<Bfloat16>() + begin, size);
  });
}

/// A moment of a part of a block as float32.
void decode(const CodedMoment& moment, const CodeTable& table, std::int64_t block, std::int64_t begin, std::int64_t n,
            float* to) {
  if (moment.values.count > 0) {
    std::copy_n(moment.values.as<float>() + begin, n, to);
    return;
  }
  const float scale = moment.scales.as<float>()[block];
  const auto* const codes = moment.codes.as<std::uint8_t>() + begin;
  for (std::int64_t i = 0; i < n; ++i) to[i] = table[codes[i]] * scale;
}

float largest(const float* values, std::int64_t n) {
  std::uint32_t most = 0;
  for (std::int64_t i = 0; i < n; ++i) most = std::max(most, magnitude(values[i]));
  return std::bit_cast<float>(most);
}

void encode(const CodedMoment& moment, const CodeTable& table, std::int64_t block, std::int64_t begin, std::int64_t n,
            const float* from) {
  const float scale = moment.next.count > 0 ? moment.next.as<float>()[block] : largest(from, n);
  moment.scales.as<float>()[block] = scale;
  auto* const codes = moment.codes.as<std::uint8_t>() + begin;
  for (std::int64_t i = 0; i < n; ++i) codes[i] = code_of(table, from[i], scale);
}

/// One update, block by block, of which nothing but the scales is kept unless it `writes`.
void coded(const AdamWFactors& f, const CodedViews& v, bool writes) {
  alignas(64) float wide[kCodedBlock], kept[kCodedBlock], moments[2][kCodedBlock];
  const CodeTable* const tables[] = {&kSignedCodes, &kUnsignedCodes};
  std::int64_t block = 0;
  for (std::int64_t begin = 0, size = 0; begin < v.parameters.count; begin += size, ++block) {
    size = std::min(kCodedBlock - (v.offset + begin) % kCodedBlock, v.parameters.count - begin);
    for (int k = 0; k < 2; ++k) decode(v.moments[k], *tables[k], block, begin, size, moments[k]);
    float* parameters = v.parameters.as<float>() + begin;
    if (!writes) parameters = std::copy_n(parameters, size, kept) - size;
    update_block(
        f, Block{parameters, moments[0], moments[1], floats(v.gradient_sum, begin, size, wide), v.scale, v.clip, size});
    for (int k = 0; k < 2; ++k) {
      if (writes)
        encode(v.moments[k], *tables[k], block, begin, size, moments[k]);
      else
        v.moments[k].next.as<float>()[block] = largest(moments[k], size);
    }
    if (writes && v.rounded.count > 0) round_all(parameters, v.rounded.as<Bfloat16>() + begin, size);
  }
}
void coded_scales_on_cpu(const AdamWFactors& factors, const CodedViews& views) { coded(factors, views, false); }
void coded_update_on_cpu(const AdamWFactors& factors, const CodedViews& views) { coded(factors, views, true); }

void to_e4m3_on_cpu(const View& numbers, const View& most, const View& codes) {
  const float scale = float8_scale(kMostOfE4m3, most.as<float>()[0]);
  for (std::int64_t i = 0; i < numbers.count; ++i)
    codes.as<std::uint8_t>()[i] = to_e4m3(widen(numbers.as<Bfloat16>()[i]) * scale);
}
void from_e4m3_on_cpu(const View& codes, const View& most, const View& numbers) {
  const float largest = most.as<float>()[0], unit = 1 / float8_scale(kMostOfE4m3, largest);
  for (std::int64_t i = 0; i < numbers.count; ++i)
    numbers.as<Bfloat16>()[i] = from_e4m3(codes.as<std::uint8_t>()[i], largest, unit);
}

ZS_VECTORISED double sum_of_squares(const float* values, std::int64_t n) {
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += square(values[i + lane]);
  }
  for (std::int64_t lane = 0; i < n; ++i, ++lane) lanes[lane] += square(values[i]);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

std::vector<double> sums_of_squares(std::span<const View> tiles) {
  std::vector<double> sums(tiles.size());
  in_parts(std::ssize(tiles), /*least=*/1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      sums[i] = sum_of_squares(tiles[i].as<float>(), tiles[i].count);
  });
  return sums;
}

template <typename T>
[[gnu::always_inline]] inline std::uint64_t imprints(const T* bits, std::uint32_t magnitude, std::int64_t n) {
  std::uint64_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += imprint(bits[i], magnitude, static_cast<std::uint32_t>(i));
  return sum;
}
ZS_VECTORISED std::uint64_t fingerprint(const std::uint32_t* bits, std::int64_t n) {
  return imprints(bits, kMagnitude32, n);
}
ZS_VECTORISED std::uint64_t fingerprint(const std::uint16_t* bits, std::int64_t n) {
  return imprints(bits, kMagnitude16, n);
}

std::vector<std::uint64_t> fingerprints_on_cpu(std::span<const View> views) {
  std::vector<std::uint64_t> made;
  for (const View& view : views) {
    made.push_back(size(view.type) == 4 ? fingerprint(view.as<const std::uint32_t>(), view.count)
                                        : fingerprint(view.as<const std::uint16_t>(), view.count));
  }
  return made;
}

}  // namespace

void in_parts(std::int64_t count, std::int64_t least, const std::function<void(std::int64_t, std::int64_t)>& compute) {
  at::parallel_for(0, count, least, compute);
}

const Operations& operations(const Device& device) {
  static constexpr Operations cpu = {
      tree_sum_on_cpu,     carry,          update_on_cpu,    direction_on_cpu, coded_scales_on_cpu,
      coded_update_on_cpu, to_e4m3_on_cpu, from_e4m3_on_cpu, sums_of_squares,  fingerprints_on_cpu};
  if (device.kind == Device::Kind::cpu) return cpu;
  return *cuda::backend().operations;
}

}  // namespace zs::device
