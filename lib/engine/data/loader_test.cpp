// SPDX-License-Identifier: Apache-2.0
#include "data/loader.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "data/windows.hpp"

namespace zs::data {
namespace {

/// 0, 1, 2, ...
class Counting final : public Tokens {
 public:
  explicit Counting(std::int64_t count) : count_(count) {}
  std::int64_t count() const override { return count_; }
  void copy(std::int64_t first, std::span<std::int64_t> out) const override {
    REQUIRE(first + static_cast<std::int64_t>(out.size()) <= count_);
    std::iota(out.begin(), out.end(), first);
  }
  std::int64_t vocabulary() const override { return count_; }
  const std::string& sha256() const override { return path_; }
  const std::string& path() const override { return path_; }

 private:
  std::int64_t count_;
  std::string path_ = "counting";
};

Split split_numbers(std::int64_t count, std::int64_t length) {
  return windows({std::make_shared<Counting>(count)}, {length}, {});
}

TEST_CASE("data: windows lie side by side, targets one token later; the last tenth is held out") {
  const Split made = split_numbers(1001, 10);
  CHECK(made.training->size() == 90);
  CHECK(made.validation->size() == 10);
  const Samples kept = read(*made.training, 0, 90), held = read(*made.validation, 0, 10);
  CHECK(kept.count == 90);
  for (std::int64_t i = 0; i < 900; ++i) {
    CHECK(kept.tokens[static_cast<std::size_t>(i)] == i);
    CHECK(kept.targets[static_cast<std::size_t>(i)] == i + 1);
  }
  CHECK(held.tokens.front() == 900);
  CHECK(held.targets.back() == 1000);
  CHECK_THROWS_AS(split_numbers(20, 10), Error);
}

TEST_CASE("data: every training sample comes once an epoch, and another epoch has another order") {
  const Split made = split_numbers(1001, 10);
  Loader loader(*made.training, 3, 5, 7);
  std::vector<std::int64_t> first, second;
  for (std::int64_t step = 1; step <= 12; ++step) {  // 6 steps of 15 samples are an epoch
    for (std::int64_t leaf = 0; leaf < 5; ++leaf) {
      const Samples samples = loader.read(step, leaf);
      for (std::int64_t i = 0; i < 3; ++i)
        (step <= 6 ? first : second).push_back(samples.tokens[static_cast<std::size_t>(10 * i)]);
    }
  }
  CHECK(first != second);
  CHECK(!std::is_sorted(first.begin(), first.end()));
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  CHECK(first == second);
  CHECK(std::adjacent_find(first.begin(), first.end()) == first.end());
  CHECK(loader.epoch(6) == 0);
  CHECK(loader.epoch(7) == 1);
}

TEST_CASE("data: targets are counted by leaf and by step, in the order in which samples are read") {
  /// Tokens of which every seventh separates.
  class Sevens final : public Tokens {
   public:
    std::int64_t count() const override { return 700; }
    void copy(std::int64_t first, std::span<std::int64_t> out) const override {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = (first + static_cast<std::int64_t>(i)) % 7 == 6 ? 0 : 1;
    }
    std::int64_t vocabulary() const override { return 2; }
    const std::string& sha256() const override { return path_; }
    const std::string& path() const override { return path_; }

   private:
    std::string path_ = "sevens";
  };
  const Split made = windows({std::make_shared<Sevens>()}, {4, Packing::none, 0}, {});  // 6 targets: 4 and 2
  CHECK(made.documents == 100);
  CHECK(made.training->size() == 180);
  Loader loader(*made.training, 3, 4, 7);
  for (std::int64_t step = 1; step <= 40; ++step) {  // an epoch is 15 steps
    std::int64_t total = 0;
    for (std::int64_t leaf = 0; leaf < 4; ++leaf) {
      const Samples samples = loader.read(step, leaf);
      const std::int64_t counted = std::count_if(samples.targets.begin(), samples.targets.end(),
                                                 [](std::int64_t target) { return target != kPadding; });
      CHECK(loader.targets(step, leaf) == counted);
      total += counted;
    }
    CHECK(loader.targets(step) == total);
  }
}

TEST_CASE("data: a leaf has the same samples whoever asks, in whatever order, read ahead or not") {
  const Split made = split_numbers(1001, 10);
  Loader whole(*made.training, 2, 4, 1);
  std::vector<std::vector<std::int64_t>> expected;
  for (std::int64_t step = 1; step <= 30; ++step) {
    for (std::int64_t leaf = 0; leaf < 4; ++leaf) expected.push_back(whole.read(step, leaf).tokens);
  }
  const auto same = [&](Loader& loader, std::int64_t step, std::int64_t leaf) {
    return loader.read(step, leaf).tokens == expected[static_cast<std::size_t>((step - 1) * 4 + leaf)];
  };
  SUBCASE("a rank of two, each with the leaves of its own") {
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      Loader loader(*made.training, 2, 4, 1);
      for (std::int64_t step = 1; step <= 30; ++step) {
        for (std::int64_t micro = 0; micro < 2; ++micro) CHECK(same(loader, step, 2 * micro + rank));
      }
    }
  }
  SUBCASE("backwards, and the same twice") {
    Loader loader(*made.training, 2, 4, 1);
    for (std::int64_t step = 30; step >= 1; --step) {
      for (std::int64_t leaf = 3; leaf >= 0; --leaf) {
        CHECK(same(loader, step, leaf));
        CHECK(same(loader, step, leaf));
      }
    }
  }
  SUBCASE("another seed is another order") {
    Loader loader(*made.training, 2, 4, 2);
    CHECK(!same(loader, 1, 0));
  }
}

}  // namespace
}  // namespace zs::data
