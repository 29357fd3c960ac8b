// SPDX-License-Identifier: Apache-2.0
#include "verify/finding.hpp"

#include <doctest/doctest.h>

namespace zs::verify {
namespace {

TEST_CASE("finding: numbers are told so that no bit is lost") {
  CHECK(decimal(0.1F) == "0.1");
  CHECK(hexadecimal(0.1F) == "0x1.99999ap-4");
  CHECK(decimal(0.1) == "0.1");
  CHECK(hexadecimal(-0.0) == "-0x0p+0");
}

}  // namespace
}  // namespace zs::verify
