// SPDX-License-Identifier: Apache-2.0
#include "train/calibrate.hpp"

#include <doctest/doctest.h>

namespace zs::train {
namespace {

TEST_CASE(
    "calibrate: the roofline has what takes most of a step first, its rate beside a large product's, and the sum") {
  // 4 calls in 2 steps of 1 ms and 4e11 operations: 400 TFLOP/s, half of 800.
  const kernel::Measured product{"product", "00", 2e-3, 1e-3, 4e11, 4}, attention{"attention", "", 3e-3, 3e-3, 3e11, 2};
  CHECK(roofline({product, attention}, 2, 8e14) ==
        "ms a step  calls  first (us)  fastest (us)  TFLOP/s  of the rate  product\n"
        "    3.000      1        3000          3000    100.0        0.125  attention\n"
        "    2.000      2        2000          1000    400.0        0.500  product\n"
        "    5.000                                     220.0        0.275  all\n");
  CHECK(roofline({}, 2, 8e14) == "ms a step  calls  first (us)  fastest (us)  TFLOP/s  of the rate  product\n");
}

}  // namespace
}  // namespace zs::train
