// SPDX-License-Identifier: Apache-2.0
#include "base/checksum.hpp"

#include <doctest/doctest.h>

namespace zs {
namespace {

TEST_CASE("a small log has the hash of FIPS 180-4, whatever its pieces") {
  Checksum sum(3);
  sum.add("a");
  sum.add("bc");
  CHECK(sum.name() == "sha256");
  CHECK(sum.text() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("a large log has what xxh128sum prints, whether its size was known or not") {
  const std::string piece(1 << 20, 'z');
  for (const std::int64_t expected : {std::int64_t{0}, Checksum::kLargest + 1}) {
    Checksum sum(expected);
    for (std::int64_t added = 0; added <= Checksum::kLargest; added += 1 << 20) sum.add(piece);
    CHECK(sum.name() == "xxh128");
    CHECK(sum.text() == "c755d63d4fcbd2e9abbf40dab8e366bf");
  }
}

}  // namespace
}  // namespace zs
