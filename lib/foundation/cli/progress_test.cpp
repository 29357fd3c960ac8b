// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace zs::cli {

TEST_CASE("progress: time left as a clock, and about how long in words") {
  CHECK(clock_text(0) == "0:00:00");
  CHECK(clock_text(83.4) == "0:01:23");
  CHECK(clock_text(90000) == "25:00:00");
  CHECK(clock_text(std::nan("")) == "?");
  CHECK(about(59) == "less than a minute");
  CHECK(about(60) == "about 1 minute");
  CHECK(about(1208) == "about 20 minutes");
  CHECK(about(5400) == "about 90 minutes");
  CHECK(about(7300) == "about 2 hours");
  CHECK(about(5000) == "about 83 minutes");
  CHECK(about(3 * 86400) == "about 3 days");
}

TEST_CASE("progress: a bar is as wide as asked, empty at 0 and full at 1 alone") {
  CHECK(bar(0, 7) == "[-----]");
  CHECK(bar(0.5, 6) == "[##--]");
  CHECK(bar(0.999, 12) == "[#########-]");
  CHECK(bar(1, 7) == "[#####]");
  CHECK(bar(7, 7) == "[#####]");
}

TEST_CASE("progress: a line tells what is done, how much, and the time left by the time so far") {
  CHECK(progress_text(0.25, "step 1 of 4", 10) == "[#####---------------]  25 %  step 1 of 4  0:00:30 left");
  CHECK(progress_text(0, "a.log", 1) == "[--------------------]   0 %  a.log  ? left");
  CHECK(progress_text(0.999, "a.log", 60) == "[###################-]  99 %  a.log  0:00:00 left");
}

}  // namespace zs::cli
