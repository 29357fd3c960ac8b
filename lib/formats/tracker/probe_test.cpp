// SPDX-License-Identifier: Apache-2.0
#include "tracker/probe.hpp"

#include <doctest/doctest.h>

#include <limits>

namespace zs::tracker {
namespace {

TEST_CASE("probe: the digest is zs_probe's, adds up over parts, and sees an order, a sign and a last bit") {
  // By share/probe/zs_probe's definition in Python's integers.
  const std::vector<float> values = {1, -2.5, 0, -0.0F, 3e-45F, std::numeric_limits<float>::infinity()};
  CHECK(probe_digest(values, 0) == 0x74b3cd0cb98f5bfe);
  CHECK(probe_digest(values, 65533) == 0x4898e58e144ac4ee);  // over the end of a chunk
  std::vector<float> many(200000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i % 977) / 7;
  const std::uint64_t whole = probe_digest(many, 0);
  const std::span<const float> all(many);
  CHECK(probe_digest(all.first(70001), 0) + probe_digest(all.subspan(70001), 70001) == whole);
  std::swap(many[3], many[4]);
  CHECK(probe_digest(many, 0) != whole);
  std::swap(many[3], many[4]);
  CHECK(probe_digest(many, 0) == whole);
  many[0] = -0.0F;
  CHECK(probe_digest(many, 0) != whole);
}

}  // namespace
}  // namespace zs::tracker
