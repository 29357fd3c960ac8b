// SPDX-License-Identifier: Apache-2.0
#include "zero/norm.hpp"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <mutex>

#include "device/arithmetic.hpp"

namespace zs::zero {
namespace {

float value(std::int64_t unit, std::int64_t i) {
  return static_cast<float>(std::sin(static_cast<double>(i) * 12.9898 + static_cast<double>(unit) * 78.233) * 1000);
}

/// The definition: tiles in order, each in lanes.
double serial(const std::vector<std::int64_t>& units) {
  double sum = 0;
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (std::int64_t tile = 0; tile < kTiles; ++tile) {
      const comm::Slice bounds = comm::slice(units[unit], tile, kTiles);
      std::array<double, device::kLanes> lanes{};
      for (std::int64_t i = bounds.begin; i < bounds.end; ++i)
        lanes[static_cast<std::size_t>((i - bounds.begin) % device::kLanes)] +=
            std::pow(static_cast<double>(value(static_cast<std::int64_t>(unit), i)), 2);
      for (std::size_t half = lanes.size() / 2; half > 0; half /= 2) {
        for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
      }
      sum += lanes[0];
    }
  }
  return sum;
}

/// Of all ranks, which must agree.
double sum_on(int ranks, const std::vector<std::int64_t>& units, bool replicated = false) {
  double result = -1;
  std::mutex mutex;
  bool agree = true;
  comm::run_in_process(ranks, [&](comm::Group& group) {
    std::vector<std::vector<float>> values;
    std::vector<Shard> shards;
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
      const comm::Slice slice =
          replicated ? comm::Slice{0, units[unit]} : comm::slice(units[unit], group.rank(), group.size());
      values.emplace_back();
      for (std::int64_t i = slice.begin; i < slice.end; ++i)
        values.back().push_back(value(static_cast<std::int64_t>(unit), i));
      shards.push_back({device::view(values.back().data(), slice.size()), slice, units[unit]});
    }
    const double sum = sum_of_squares(group, shards, replicated);
    const std::lock_guard lock(mutex);
    agree = agree && (result < 0 || result == sum);
    result = sum;
  });
  CHECK(agree);
  return result;
}

TEST_CASE("norm: its bits are those of the definition on any number of ranks, whoever shares a tile") {
  for (const std::vector<std::int64_t>& units :
       {std::vector<std::int64_t>{1}, {255, 0, 256}, {257, 1000}, {70001, 513, 65536, 3}, {300007}}) {
    const double expected = serial(units);
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 12, 48}) {
      CAPTURE(ranks);
      CAPTURE(units.front());
      CHECK(std::bit_cast<std::uint64_t>(sum_on(ranks, units)) == std::bit_cast<std::uint64_t>(expected));
    }
    CHECK(sum_on(3, units, true) == expected);
  }
  // The tiles' borders matter: tiles of the ranks' own have other bits.
  const std::vector<std::int64_t> whole = {70001}, cut = {23333, 23334, 23334};
  CHECK(serial(whole) != serial(cut));
}

TEST_CASE("norm: more ranks than tiles share each of them, in turn") {
  const std::vector<std::int64_t> units = {100, 3000, 20011};
  CHECK(sum_on(300, units) == serial(units));
}

}  // namespace
}  // namespace zs::zero
