// SPDX-License-Identifier: Apache-2.0
#include "zero/step_clock.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

namespace zs::zero {

TEST_CASE("on a processor a step takes from its begin to its end, and nothing of it is left") {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  const auto work = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  StepClock clock{device::Device{}};
  for (int step = 0; step < 3; ++step) {
    const Clock::time_point before = Clock::now();
    clock.begin();
    const Clock::time_point begin = Clock::now();
    work();
    if (step > 0) clock.reached();
    work();
    const double least = seconds_since(begin), seconds = clock.end();
    CHECK(seconds >= least);
    CHECK(seconds <= seconds_since(before));
    work();
    CHECK(clock.rest() == 0);
  }
}

}  // namespace zs::zero
