// SPDX-License-Identifier: Apache-2.0
#include "device/operations.hpp"

#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>

namespace zs::device {
namespace {

std::uint64_t fingerprint(const View& view) { return operations({}).fingerprints({&view, 1})[0]; }

template <typename T>
std::uint64_t fingerprint(const std::vector<T>& values) {
  return fingerprint(view(values.data(), static_cast<std::int64_t>(values.size())));
}

}  // namespace

TEST_CASE("operations: a fingerprint is 0 of zeros, and another after any change of one element") {
  CHECK(operations({}).fingerprints({}).empty());
  CHECK(fingerprint(std::vector<float>{}) == 0);
  CHECK(fingerprint(std::vector<float>(1000, 0.0F)) == 0);
  CHECK(fingerprint(std::vector<float>(1000, -0.0F)) == 0);
  CHECK(fingerprint(std::vector<Bfloat16>(1000, Bfloat16{0x8000})) == 0);
  CHECK(fingerprint(std::vector<float>{std::nanf("")}) != 0);
  CHECK(fingerprint(std::vector<float>{1e-45F}) != 0);

  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> values(3001);
  for (float& value : values) value = normal(random);
  const std::uint64_t before = fingerprint(values);
  CHECK(fingerprint(std::vector<float>(values)) == before);
  for (float& value : values) {
    const float was = value;
    for (const float now : {std::nextafter(was, 2 * was), -was, 0.0F}) {
      value = now;
      CHECK(fingerprint(values) != before);
    }
    value = was;
  }
  // Changes that a sum would not show.
  std::vector<float> moved = values;
  std::swap(moved[5], moved[6]);
  CHECK(fingerprint(moved) != before);
  std::vector<float> apart = values;
  apart[0] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(apart[0]) + 1);
  apart[1] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(apart[1]) - 1);
  CHECK(fingerprint(apart) != before);

  // Several views, each for itself; 16 bits.
  const View whole = view(values.data(), 3001);
  const std::vector<View> parts = {whole.part(0, 1000), whole.part(1000, 1000), whole.part(1000, 3001)};
  const std::vector<std::uint64_t> prints = operations({}).fingerprints(parts);
  REQUIRE(prints.size() == 3);
  CHECK(prints[0] == fingerprint(parts[0]));
  CHECK(prints[1] == 0);
  CHECK(prints[2] == fingerprint(parts[2]));
  std::vector<Bfloat16> narrow(70);
  for (std::size_t i = 0; i < narrow.size(); ++i) narrow[i].bits = static_cast<std::uint16_t>(random());
  const std::uint64_t of_narrow = fingerprint(narrow);
  narrow[69].bits ^= 1;
  CHECK(fingerprint(narrow) != of_narrow);
}

TEST_CASE("operations: threads share the sums of numbers and of squares, and no bit depends on their number") {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> values(300'001);
  for (float& value : values) value = normal(random);
  const View whole = view(values.data(), 300'001);
  const std::vector<View> leaves = {whole.part(0, 100'000), whole.part(100'000, 200'000), whole.part(200'000, 300'000)};
  const auto sums = [&](int threads) {
    at::set_num_threads(threads);
    std::vector<float> sum(100'000);
    operations({}).tree_sum(leaves, view(sum.data(), 100'000));
    const std::vector<double> squares = operations({}).sums_of_squares(leaves);
    at::set_num_threads(1);
    return std::pair(sum, squares);
  };
  CHECK(sums(3) == sums(1));
  CHECK(sums(1).first[99'999] == values[99'999] + values[199'999] + values[299'999]);
}

}  // namespace zs::device
