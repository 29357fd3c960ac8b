// SPDX-License-Identifier: Apache-2.0
#include "comm/float8_codec.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "device/arithmetic.hpp"
#include "device/tensor.hpp"

namespace zs::comm {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("float8 codec: E4M3 is LibTorch's") {
  for (int code = 0; code < 256; ++code) {
    const float value = c10::Float8_e4m3fn(static_cast<std::uint8_t>(code), c10::Float8_e4m3fn::from_bits());
    const float number = device::widen_e4m3(static_cast<std::uint8_t>(code));
    CAPTURE(code);
    CHECK(((std::isnan(value) && std::isnan(number)) || value == number));
  }
  for (std::uint32_t bits = 0; bits < 1U << 16; ++bits) {
    // Every bfloat16, and one between it and the next.
    for (const std::uint32_t below : {0U, 1U, 0x8000U}) {
      const float x = std::bit_cast<float>(bits << 16 | below);
      if (!(std::fabs(x) <= 448)) continue;
      CAPTURE(x);
      REQUIRE(device::to_e4m3(x) == c10::Float8_e4m3fn(x).x);
    }
  }
  CHECK(device::to_e4m3(449) == 0x7e);
  CHECK(device::to_e4m3(-kInfinity) == 0xfe);
}

/// What a product rounds the numbers of a scale to, and its scale.
at::Tensor taken(const at::Tensor& numbers) {
  const at::Tensor wide = numbers.to(at::kFloat), most = wide.abs().max();
  return at::cat({wide.mul(at::full({}, 448.0F).div(most)).to(at::kFloat8_e4m3fn).to(at::kFloat), most.view({1})});
}

struct Unit {
  std::vector<Float8Codec::Weights> weights;
  std::int64_t n;
};

at::Tensor travelled(const Unit& unit, const at::Tensor& in, int ranks) {
  const Float8Codec codec(unit.weights, unit.n, ranks);
  for (int rank = 0; rank < ranks; ++rank) CHECK(codec.part(rank).begin == slice(codec.bytes(), rank, ranks).begin);
  return codec.travelled(in);
}

const Unit kUnits[] = {{{{10, 4010, 0}, {4010, 4500, 0}, {4500, 6000, 1}, {6007, 9001, 2}}, 9100},
                       {{{0, 64, 0}}, 64},
                       {{{3, 4, 0}}, 7},
                       {{{0, 1, 1}, {5, 900, 0}}, 1000}};

TEST_CASE("float8 codec: products take the same bits of what comes out, and other numbers are what they were") {
  for (const double width : {1.0, 1e-3, 3e-30, 1e30}) {
    for (const Unit& unit : kUnits) {
      for (const int ranks : {1, 2, 3, 5, 8}) {
        CAPTURE(width);
        CAPTURE(unit.n);
        CAPTURE(ranks);
        const at::Tensor in = at::randn({unit.n}).mul(at::randn({unit.n}).exp()).mul(width).to(at::kBFloat16);
        const at::Tensor out = travelled(unit, in, ranks);
        std::int64_t from = 0, coded = 0;
        for (int scale = 0; scale < 3; ++scale) {
          std::vector<at::Tensor> before, after;
          for (const Float8Codec::Weights& matrix : unit.weights) {
            if (matrix.scale != scale) continue;
            before.push_back(in.slice(0, matrix.begin, matrix.end)),
                after.push_back(out.slice(0, matrix.begin, matrix.end));
          }
          if (!before.empty()) CHECK(at::equal(taken(at::cat(before)), taken(at::cat(after))));
        }
        for (const Float8Codec::Weights& matrix : unit.weights) {
          CHECK(at::equal(in.slice(0, from, matrix.begin), out.slice(0, from, matrix.begin)));
          from = matrix.end, coded += matrix.end - matrix.begin;
        }
        CHECK(at::equal(in.slice(0, from), out.slice(0, from)));
        const std::int64_t longest = (unit.n + ranks - 1) / ranks;
        CHECK(Float8Codec(unit.weights, unit.n, ranks).bytes() ==
              ranks * (longest + std::min(longest, unit.n - coded)));
      }
    }
  }
}

TEST_CASE("float8 codec: zeros stay, and what is not finite is not hidden") {
  const Unit unit{{{0, 100, 0}, {100, 200, 1}}, 200};
  at::Tensor in = at::randn({200}).to(at::kBFloat16);
  in.slice(0, 0, 100).zero_();
  CHECK(at::equal(travelled(unit, in, 3).slice(0, 0, 100), in.slice(0, 0, 100)));
  for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    in[150] = bad;
    const at::Tensor out = travelled(unit, in, 3);
    CHECK(out.slice(0, 100).isfinite().any().item<bool>() == false);
    CHECK(at::equal(out.slice(0, 0, 100), in.slice(0, 0, 100)));
  }
}

}  // namespace
}  // namespace zs::comm
