// SPDX-License-Identifier: Apache-2.0
#include "comm/group.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "comm/cases_test.hpp"

namespace zs::comm {
namespace {

using device::view;
using std::chrono::steady_clock;

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("slices cover n without gap, differ by one element at most, and nest") {
  for (const std::int64_t n :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{17}, std::int64_t{1000003}, std::int64_t{1} << 50}) {
    for (const std::int64_t ranks : {1, 2, 3, 4, 8, 64, 1024}) {
      std::int64_t end = 0;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const Slice part = slice(n, rank, ranks);
        CHECK(part.begin == end);
        CHECK(part.size() - n / ranks <= 1);
        CHECK(part.size() >= n / ranks);
        CHECK(part.begin == slice(n, 2 * rank, 2 * ranks).begin);
        CHECK(part.end == slice(n, 2 * rank + 1, 2 * ranks).end);
        end = part.end;
      }
      CHECK(end == n);
    }
  }
}

TEST_CASE("a group of threads keeps the contract on 1 to 8 ranks") {
  for (const int ranks : {1, 2, 3, 4, 5, 8}) {
    CAPTURE(ranks);
    CHECK_NOTHROW(run_in_process(ranks, [](Group& group) { cases::all(group, {cases::Memory::allocated}); }));
  }
}

TEST_CASE("one rank alone") {
  const auto group = single();
  CHECK(group->rank() == 0);
  CHECK(group->size() == 1);
  CHECK(!group->host(0).empty());
  CHECK_NOTHROW(cases::all(*group, {cases::Memory::ordinary}));
  CHECK(group->bytes_sent() == 0);
}

TEST_CASE("the sum over ranks is the tree's, not the sequential one nor the far partner's") {
  constexpr std::int64_t kCount = 4096;
  int sequential_differs = 0, far_differs = 0;
  run_in_process(4, [&](Group& group) {
    std::vector<float> full(kCount), mine(kCount / 4);
    for (std::int64_t i = 0; i < kCount; ++i) full[static_cast<std::size_t>(i)] = cases::value(3, group.rank(), i);
    group.reduce_scatter(view(full.data(), kCount), view(mine.data(), kCount / 4), "sum")->wait();
    if (group.rank() != 1) return;
    for (std::int64_t i = 0; i < kCount / 4; ++i) {
      const auto v = [&](int rank) { return cases::value(3, rank, kCount / 4 + i); };
      const float sum = mine[static_cast<std::size_t>(i)];
      CHECK(sum == (v(0) + v(1)) + (v(2) + v(3)));
      sequential_differs += sum != ((v(0) + v(1)) + v(2)) + v(3);
      far_differs += sum != (v(0) + v(2)) + (v(1) + v(3));
    }
  });
  CHECK(sequential_differs > 100);
  CHECK(far_differs > 100);
}

TEST_CASE("a rank that throws ends the waits of the others, and its error is the one reported") {
  const auto begin = steady_clock::now();
  const std::string text = error_of([] {
    run_in_process(4, [](Group& group) {
      if (group.rank() == 2) throw Error("rank two has had enough");
      float value = 1;
      std::vector<float> gathered(4);
      group.all_gather(view(&value, 1), view(gathered.data(), 4), "all-gather of w")->wait();
    });
  });
  CHECK(text == "rank two has had enough");
  CHECK(steady_clock::now() - begin < std::chrono::seconds(5));
}

TEST_CASE("a rank that is late is named, with the collective, after the timeout") {
  std::string text;
  const auto begin = steady_clock::now();
  auto groups = in_process(3, {.timeout = 0.3});
  std::vector<float> full(300), mine(100);
  std::thread one([&] {
    std::vector<float> theirs_full(300), theirs(100);
    error_of([&] {
      groups[1]
          ->reduce_scatter(view(theirs_full.data(), 300), view(theirs.data(), 100), "reduce-scatter of h.2")
          ->wait();
    });
  });
  text = error_of([&] {
    groups[0]->reduce_scatter(view(full.data(), 300), view(mine.data(), 100), "reduce-scatter of h.2")->wait();
  });
  one.join();
  const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
  const std::string late = "rank 2 on " + groups[0]->host(2);
  CHECK(text.starts_with("reduce-scatter of h.2: "));
  CHECK(text.find(late) != std::string::npos);
  CHECK(seconds > 0.25);
  CHECK(seconds < 5);
  SUBCASE("the group cannot be used after that") {
    CHECK(error_of([&] { groups[0]->all_gather_object("x", "next"); }).find("failed before") != std::string::npos);
  }
}

TEST_CASE("a rank that has left is named at once") {
  auto groups = in_process(2);
  groups[1].reset();
  const std::string text = error_of([&] { groups[0]->all_gather_object("x", "goodbye"); });
  CHECK(text == "goodbye: rank 1 on " + groups[0]->host(1) + " has left the group");
}

TEST_CASE("a collective that is dropped under way fails the group") {
  auto groups = in_process(2);
  std::vector<float> full(2);
  groups[0]->all_gather(view(&full[0], 1), view(full.data(), 2), "dropped").reset();
  groups[1]->all_gather(view(&full[1], 1), view(full.data(), 2), "dropped")->wait();  // what it needs was sent
  const std::string text = error_of([&] { groups[1]->all_gather_object("x", "next"); });
  CHECK(text.find("rank 0 failed: dropped: left before it was complete") != std::string::npos);
}

TEST_CASE("ranks that disagree on a size are told") {
  const std::string text = error_of([] {
    run_in_process(2, [](Group& group) {
      std::vector<float> full(20), mine(20);
      const std::int64_t n = group.rank() ? 20 : 10;
      group.reduce_scatter(view(full.data(), n), view(mine.data(), n / 2), "sum")->wait();
    });
  });
  CHECK(text.find("bytes where this rank expects") != std::string::npos);
}

TEST_CASE("ranks that disagree on what one sends the other are told, also where one sends nothing") {
  for (const std::int64_t sent : {0, 9}) {
    const std::string text = error_of([&] {
      run_in_process(2, [&](Group& group) {
        std::vector<float> values(10), received(10);
        std::vector<device::View> to(2, view(values.data(), 3)), from(2, view(received.data(), 3));
        if (group.rank() == 1) to[0].count = sent;
        group.all_to_all(to, from, "tokens")->wait();
      });
    });
    CHECK(text == "tokens: rank 1 sent " + std::to_string(4 * sent) +
                      " bytes where this rank expects 12: the ranks are not in the same collective");
  }
  CHECK(error_of([] {
          std::vector<device::View> none;
          single()->all_to_all(none, none, "tokens");
        }) == "tokens: 0 parts go and 0 come, of 1 ranks");
}

TEST_CASE("options and counts that make no sense are refused") {
  CHECK(!error_of([] { in_process(0); }).empty());
  CHECK(!error_of([] { in_process(1, {.timeout = 0}); }).empty());
  CHECK(!error_of([] { in_process(1, {.timeout = std::numeric_limits<double>::quiet_NaN()}); }).empty());
}

}  // namespace
}  // namespace zs::comm
