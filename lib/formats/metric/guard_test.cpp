// SPDX-License-Identifier: Apache-2.0
#include "metric/hdf5.hpp"

#include <doctest/doctest.h>

#include <csignal>

#include "base/error.hpp"
#include "metric/file.hpp"

namespace zs::metric {

TEST_CASE("a guarded work gives its result, however long, or its error") {
  const std::string text(300000, 'x');
  CHECK(guarded([&] { return text; }, 5) == text);
  CHECK(guarded([] { return std::string(); }, 5).empty());
  CHECK_THROWS_WITH_AS(guarded([]() -> std::string { throw Error("no such thing"); }, 5), "no such thing", Error);
}

TEST_CASE("a guarded work that crashes is an error") {
  CHECK_THROWS_WITH_AS(guarded([] { return std::raise(SIGSEGV) == 0 ? std::string("alive") : std::string("dead"); }, 5),
                       "corrupt HDF5 data: the HDF5 library crashes on it (signal 11)", Error);
}

TEST_CASE("a guarded work that does not end is an error") {
  const auto endless = [] {
    for (volatile bool more = true; more;) continue;
    return std::string();
  };
  CHECK_THROWS_WITH_AS(guarded(endless, 1),
                       doctest::Contains("corrupt HDF5 data: the HDF5 library does not come to an end"), Error);
}

TEST_CASE("what zs writes needs no guard") {
  Store store;
  for (int r = 0; r < 40; ++r) {
    Run& run = store.runs.emplace_back();
    run.name = "run" + std::to_string(r);
    for (int i = 0; i < 40; ++i) run.attributes["key" + std::to_string(i)] = std::string(50, 'v');
    for (int i = 0; i < 30; ++i) run.records.column("c" + std::to_string(i)).reals() = {1, 2, 3};
  }
  CHECK_FALSE(needs_guard(to_h5(store)));
  CHECK(needs_guard(std::string("\x89HDF\r\n\x1a\n\0", 9)));
}

}  // namespace zs::metric
