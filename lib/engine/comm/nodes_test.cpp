// SPDX-License-Identifier: Apache-2.0
#include "comm/nodes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <thread>

#include "comm/cases_test.hpp"

namespace zs::comm {
namespace {

using device::view;

/// A group whose ranks say that they are on these hosts.
class Placed : public Group {
 public:
  explicit Placed(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {}
  int rank() const override { return 0; }
  int size() const override { return static_cast<int>(hosts_.size()); }
  const std::string& host(int rank) const override { return hosts_[static_cast<std::size_t>(rank)]; }
  device::Buffer allocate(std::int64_t) override { return {}; }
  Work reduce_scatter(const Summands&, const device::View&, const std::string&) override { return {}; }
  Work all_gather_coalesced(std::span<const Gathered>, const std::string&) override { return {}; }
  Work all_to_all(std::span<const device::View>, std::span<const device::View>, const std::string&) override {
    return {};
  }
  std::vector<std::string> all_gather_object(const std::string&, const std::string&) override { return {}; }
  std::unique_ptr<Group> split(int, const std::string&) override { return {}; }
  std::int64_t bytes_sent() const override { return 0; }
  std::int64_t bytes_between_nodes() const override { return 0; }
  std::int64_t collectives() const override { return 0; }
  void abort() override {}

 private:
  std::vector<std::string> hosts_;
};

TEST_CASE("nodes are seen where ranks are adjacent, and as many on each") {
  const auto ranks = [](std::vector<std::string> hosts) { return ranks_of_node(Placed(std::move(hosts))); };
  CHECK(ranks({"a", "a", "b", "b"}) == 2);
  CHECK(ranks({"a", "a", "b", "b", "c", "c"}) == 2);
  CHECK(ranks({"a", "a", "a", "a", "b", "b", "b", "b"}) == 4);
  CHECK(ranks({"a"}) == 0);
  CHECK(ranks({"a", "a"}) == 0);                      // one node
  CHECK(ranks({"a", "b", "c", "d"}) == 0);            // one rank each
  CHECK(ranks({"a", "b", "a", "b"}) == 0);            // dealt in turn
  CHECK(ranks({"a", "a", "b", "b", "b", "b"}) == 0);  // not as many on each
  CHECK(ranks({"a", "a", "a", "b", "b", "b"}) == 3);
  CHECK(ranks({"a", "a", "b", "c"}) == 0);
}

TEST_CASE("the sum within nodes first, then between them, has the bits of the sum of all ranks") {
  struct Shape {
    int nodes, ranks;
  };
  for (const Shape shape : {Shape{2, 2}, {2, 3}, {3, 2}, {2, 4}, {3, 4}, {3, 5}, {4, 8}}) {
    CAPTURE(shape.nodes);
    CAPTURE(shape.ranks);
    const int ranks = shape.nodes * shape.ranks;
    CHECK_NOTHROW(run_in_process(ranks, [&](Group& group) {
      const auto nodes = Nodes::of(group, shape.ranks);
      int seed = 0;
      for (const std::int64_t n : {0, 1, 1000, 98304, 100003}) {
        ++seed;
        const Slice local = slice(n, group.rank(), ranks);
        std::vector<float> full(static_cast<std::size_t>(n)), mine(static_cast<std::size_t>(local.size()));
        for (std::int64_t i = 0; i < n; ++i) full[static_cast<std::size_t>(i)] = cases::value(seed, group.rank(), i);
        const std::int64_t before = nodes->bytes_sent(), between = nodes->bytes_between_nodes();
        const auto of_nodes = [&](const device::View& leaf, const char* what) {
          nodes->reduce_scatter({n, leaf.type, tree::Addends::one_each(ranks), {leaf}}, view(mine.data(), local.size()),
                                what);
        };
        of_nodes(view(full.data(), n), "sum");
        for (std::int64_t i = 0; i < local.size(); ++i)
          cases::require_bits(mine[static_cast<std::size_t>(i)], cases::serial(seed, 0, ranks, local.begin + i), "sum",
                              i);
        if (n % ranks == 0) {
          // A node's sums are one where its ranks are a power of two.
          const auto sums = std::ssize(tree::nodes(
              {group.rank() / shape.ranks * shape.ranks, (group.rank() / shape.ranks + 1) * shape.ranks}, ranks));
          const std::int64_t far = 4 * (shape.nodes - 1) * (n / ranks) * sums;
          cases::require(nodes->bytes_sent() - before == 4 * (n - n / shape.ranks) + far, "bytes", n);
          cases::require(nodes->bytes_between_nodes() - between == far, "bytes between", n);
        }
        // Leaves of 16 bits.
        std::vector<device::Bfloat16> narrow(static_cast<std::size_t>(n));
        for (std::int64_t i = 0; i < n; ++i)
          narrow[static_cast<std::size_t>(i)] = {
              static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(full[static_cast<std::size_t>(i)]) >> 16)};
        std::vector<float> flat(mine.size());
        group.reduce_scatter(view(narrow.data(), n), view(flat.data(), local.size()), "flat sum")->wait();
        of_nodes(view(narrow.data(), n), "narrow sum");
        for (std::size_t i = 0; i < mine.size(); ++i)
          cases::require_bits(mine[i], flat[i], "narrow sum", static_cast<std::int64_t>(i));
      }
    }));
  }
}

/// How a step's leaves are dealt: stages 0 and 1, each rank its slice of them; stages 2 and 3, one each from `first`
/// on.
struct Deal {
  std::int64_t leaves, first = -1;
  std::vector<std::vector<tree::Leaves>> terms(std::int64_t ranks) const {
    std::vector<std::vector<tree::Leaves>> held(static_cast<std::size_t>(ranks));
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const std::int64_t begin = first < 0 ? leaves * rank / ranks : std::min(leaves, first + rank),
                         end = first < 0 ? leaves * (rank + 1) / ranks : std::min(leaves, begin + 1);
      held[static_cast<std::size_t>(rank)] = tree::nodes({begin, end}, leaves);
    }
    return held;
  }
};

// Its table, in bytes: ZS_SHOW_RANKS=1 build/test-train -tc='a thousand ranks*'. Without it five of the six deals are
// on 200 ranks.
TEST_CASE("a thousand ranks on nodes of eight: the bits of the tree, and the bytes of the formula") {
  constexpr int kNode = 8, kSeed = 5;
  constexpr std::int64_t piece = 2;
  const bool shows = std::getenv("ZS_SHOW_RANKS") != nullptr;
  for (int turn = 0; turn < 6; ++turn) {
    const int hosts = shows || turn == 0 ? 125 : 25, ranks = kNode * hosts;
    const std::int64_t n = piece * ranks;
    const Deal deal = std::array<Deal, 6>{{{ranks, 0},
                                           {3 * ranks, ranks},
                                           {4 * ranks},
                                           {3 * ranks},
                                           {5 * ranks / 2},
                                           {7 * ranks / 10}}}[static_cast<std::size_t>(turn)];
    const auto addends = tree::Addends::of(deal.terms(ranks), deal.leaves);
    std::vector<std::vector<std::unique_ptr<Group>>> in_node, across;
    for (int node = 0; node < hosts; ++node) in_node.push_back(in_process(kNode));
    for (int place = 0; place < kNode; ++place) across.push_back(in_process(hosts));
    std::atomic<std::int64_t> wrong = 0, sent = 0, far = 0, other = 0;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank, node = static_cast<std::size_t>(rank / kNode),
                            place = static_cast<std::size_t>(rank % kNode)] {
        Nodes nodes(std::move(in_node[node][place]), std::move(across[place][node]));
        Summands summands{n, device::Type::float32, addends};
        std::vector<std::vector<float>> terms;
        for (const tree::Leaves& leaves : addends.terms[static_cast<std::size_t>(rank)]) {
          terms.emplace_back();
          for (std::int64_t i = 0; i < n; ++i)
            terms.back().push_back(
                cases::serial(kSeed, static_cast<int>(leaves.begin), static_cast<int>(leaves.end), i));
        }
        for (const auto& term : terms) summands.terms.push_back(view(term.data(), n));
        const auto sums = std::ssize(addends.sums);
        std::vector<float> mine(static_cast<std::size_t>(sums * piece));
        nodes.reduce_scatter(summands, view(mine.data(), sums * piece), "sum");
        for (std::int64_t at = 0; at < sums * piece; ++at) {
          const tree::Leaves sum = addends.sums[static_cast<std::size_t>(at / piece)];
          const float expected =
              cases::serial(kSeed, static_cast<int>(sum.begin), static_cast<int>(sum.end), rank * piece + at % piece);
          wrong += std::bit_cast<std::uint32_t>(expected) !=
                   std::bit_cast<std::uint32_t>(mine[static_cast<std::size_t>(at)]);
        }
        const auto first = static_cast<std::ptrdiff_t>(node) * kNode;
        const std::vector of_node(addends.terms.begin() + first, addends.terms.begin() + first + kNode);
        const auto leaving = std::ssize(tree::Addends::of(of_node, deal.leaves).sums);
        const std::int64_t between = leaving * (hosts - 1) * piece * 4,
                           expected = std::ssize(terms) * (n - n / kNode) * 4 + between;
        other += nodes.bytes_sent() != expected || nodes.bytes_between_nodes() != between;
        sent += nodes.bytes_sent(), far += nodes.bytes_between_nodes();
      });
    }
    for (std::thread& thread : threads) thread.join();
    CAPTURE(deal.leaves);
    CHECK(wrong == 0);
    CHECK(other == 0);
    if (shows)
      std::printf("%5d ranks  %6ld micro-batches  %-12s  %zu terms  %zu sums  %8ld bytes a rank, %6ld between nodes\n",
                  ranks, static_cast<long>(deal.leaves), deal.first < 0 ? "stages 0, 1" : "stages 2, 3",
                  addends.count(), addends.sums.size(), static_cast<long>(sent / ranks),
                  static_cast<long>(far / ranks));
  }
}

}  // namespace
}  // namespace zs::comm
