// SPDX-License-Identifier: Apache-2.0
#include "experiment/page.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/file.hpp"
#include "base/folder.hpp"
#include "metric/file.hpp"

namespace zs::experiment {
namespace {

void write(const std::string& folder, std::int64_t steps) {
  metric::Run run;
  run.name = "a";
  run.attributes["expected_steps"] = "100";
  std::vector<std::int64_t> numbers;
  std::vector<double> losses;
  for (std::int64_t step = 1; step <= steps; ++step)
    numbers.push_back(step), losses.push_back(1.0 / static_cast<double>(step));
  run.records.column("step").integers() = numbers;
  run.records.column("loss").reals() = losses;
  metric::Store store;
  store.runs.push_back(std::move(run));
  write_file(folder + "/metrics.h5", metric::to_h5(store));
}

/// Sleeps for longer than a file system's clock needs to tick.
void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

TEST_CASE("seen: metrics are read once for progress and curve, and again when they or the number of points change") {
  const TemporaryFolder folder;
  Seen seen;
  CHECK_FALSE(seen.progress(folder.path()).known);
  CHECK(seen.curve(folder.path(), 512) == nullptr);
  CHECK(seen.reads() == 0);
  write(folder.path(), 60);
  settle();
  CHECK(seen.progress(folder.path()).fault == "");
  CHECK(seen.progress(folder.path()).done == 60);
  const report::Curve* const curve = seen.curve(folder.path(), 512);
  REQUIRE(curve);
  CHECK(curve->at.size() == 60);
  CHECK(seen.reads() == 1);
  CHECK(seen.curve(folder.path(), 16)->at.size() == 15);  // each fourth
  CHECK(seen.curve(folder.path(), 15)->stride == 4);
  CHECK(seen.reads() == 2);
  write(folder.path(), 61);
  settle();
  CHECK(seen.progress(folder.path()).done == 61);
  CHECK(seen.reads() == 3);
  write_file(folder.path() + "/metrics.h5", "no metrics");
  settle();
  CHECK(seen.curve(folder.path(), 15) == nullptr);
  std::vector<std::string> faults;
  for (int turn = 0; turn < 2; ++turn) seen.tell([&](const Fault& fault) { faults.push_back(fault.path); });
  CHECK(faults == std::vector<std::string>{folder.path() + "/metrics.h5"});
}

}  // namespace
TEST_CASE("seen: of two writes within one tick of the file system's clock the second is seen too") {
  const TemporaryFolder folder;
  for (int turn = 0; turn < 40; ++turn) {
    Seen seen;
    write(folder.path(), 60);
    CHECK(seen.progress(folder.path()).done == 60);
    write(folder.path(), 61);
    CHECK(seen.progress(folder.path()).done == 61);
  }
}

}  // namespace zs::experiment
