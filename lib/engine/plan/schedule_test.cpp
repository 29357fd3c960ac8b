// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"

namespace zs::plan {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("schedule: passes from the start, or by steps done, and back to text") {
  CHECK(schedule_from({"prefetch", "overlap_reduce"}) == Schedule{{0, {"prefetch", "overlap_reduce"}}});
  CHECK(schedule_from({"ALL"}) == Schedule{{0, {"selective_gather", "prefetch", "overlap_reduce"}}});
  CHECK(schedule_from({"none"}) == Schedule{{0, {}}});
  const Schedule later = schedule_from({"2:prefetch+overlap_reduce", "5:none", "7:ALL"});
  CHECK(later == Schedule{{0, {}},
                          {2, {"prefetch", "overlap_reduce"}},
                          {5, {}},
                          {7, {"selective_gather", "prefetch", "overlap_reduce"}}});
  CHECK(to_text(later) == "0:none,2:prefetch+overlap_reduce,5:none,7:selective_gather+prefetch+overlap_reduce");
  CHECK(to_text(schedule_from({"prefetch", "overlap_reduce"})) == "prefetch,overlap_reduce");
  CHECK(to_text(Schedule{}) == "");
  CHECK(schedule_from({"0:prefetch"}) == schedule_from({"prefetch"}));
}

TEST_CASE("schedule: a step has the entry behind which it lies") {
  const Schedule schedule = schedule_from({"2:prefetch", "5:none"});
  const std::vector<std::size_t> expected = {0, 0, 1, 1, 1, 2, 2};
  for (std::size_t done = 0; done < expected.size(); ++done)
    CHECK(in_force(schedule, static_cast<std::int64_t>(done)) == expected[done]);
}

TEST_CASE("schedule: what is none says so") {
  const auto refused = [](const Words& words, const char* why) {
    CHECK_THROWS_WITH_AS(schedule_from(words), why, Error);
  };
  refused({"x:prefetch"}, "'x:prefetch' begins with no number of steps: 5:prefetch+overlap_reduce");
  refused({"-1:prefetch"}, "'-1:prefetch' begins with no number of steps: 5:prefetch+overlap_reduce");
  refused({"5:"}, "'5:' has no pass where one should be: 5:prefetch, or 5:none");
  refused({"5:a++b"}, "'5:a++b' has no pass where one should be: 5:prefetch, or 5:none");
  refused({"5:prefetch", "5:none"}, "'5:none' must come behind more steps than '5:' in front of it");
  refused({"prefetch", "5:none"}, "'prefetch' has no step, and other passes have one: name all as STEP:PASS+PASS");
}

}  // namespace
}  // namespace zs::plan
