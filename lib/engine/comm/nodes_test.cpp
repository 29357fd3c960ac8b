// SPDX-License-Identifier: Apache-2.0
#include "comm/nodes.hpp"

#include <doctest/doctest.h>

#include "comm/cases.hpp"

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
  Work reduce_scatter(const device::View&, const device::View&, const std::string&) override { return {}; }
  Work all_gather_coalesced(std::span<const Gathered>, const std::string&) override { return {}; }
  Work all_to_all(const device::View&, const device::View&, const std::string&) override { return {}; }
  std::vector<std::string> all_gather_object(const std::string&, const std::string&) override { return {}; }
  std::unique_ptr<Group> split(int, const std::string&) override { return {}; }
  std::int64_t bytes_sent() const override { return 0; }
  std::int64_t bytes_between_nodes() const override { return 0; }
  std::int64_t collectives() const override { return 0; }
  void abort() override {}

 private:
  std::vector<std::string> hosts_;
};

TEST_CASE("nodes are seen where ranks are adjacent, as many on each, and a power of two") {
  const auto ranks = [](std::vector<std::string> hosts) { return ranks_of_node(Placed(std::move(hosts))); };
  CHECK(ranks({"a", "a", "b", "b"}) == 2);
  CHECK(ranks({"a", "a", "b", "b", "c", "c"}) == 2);
  CHECK(ranks({"a", "a", "a", "a", "b", "b", "b", "b"}) == 4);
  CHECK(ranks({"a"}) == 0);
  CHECK(ranks({"a", "a"}) == 0);                      // one node
  CHECK(ranks({"a", "b", "c", "d"}) == 0);            // one rank each
  CHECK(ranks({"a", "b", "a", "b"}) == 0);            // dealt in turn
  CHECK(ranks({"a", "a", "b", "b", "b", "b"}) == 0);  // not as many on each
  CHECK(ranks({"a", "a", "a", "b", "b", "b"}) == 0);  // no power of two
  CHECK(ranks({"a", "a", "b", "c"}) == 0);
}

TEST_CASE("the sum within nodes first, then between them, has the bits of the sum of all ranks") {
  struct Shape {
    int nodes, ranks;
  };
  for (const Shape shape : {Shape{2, 2}, {2, 4}, {3, 4}, {4, 8}}) {
    CAPTURE(shape.nodes);
    CAPTURE(shape.ranks);
    const int all = shape.nodes * shape.ranks;
    CHECK_NOTHROW(run_in_process(all, [&](Group& group) {
      const auto nodes = Nodes::of(group, shape.ranks);
      int seed = 0;
      for (const std::int64_t n : {0, 1, 1000, 98304, 100003}) {
        ++seed;
        const Slice own = slice(n, group.rank(), all);
        std::vector<float> full(static_cast<std::size_t>(n)), mine(static_cast<std::size_t>(own.size()));
        for (std::int64_t i = 0; i < n; ++i) full[static_cast<std::size_t>(i)] = cases::value(seed, group.rank(), i);
        const std::int64_t before = nodes->bytes_sent(), between = nodes->bytes_between_nodes();
        nodes->reduce_scatter(view(full.data(), n), view(mine.data(), own.size()), "sum");
        for (std::int64_t i = 0; i < own.size(); ++i)
          cases::require_bits(mine[static_cast<std::size_t>(i)], cases::serial(seed, 0, all, own.begin + i), "sum", i);
        if (n % all == 0) {
          cases::require(nodes->bytes_sent() - before == 4 * (n - n / all), "bytes", n);
          cases::require(nodes->bytes_between_nodes() - between == 4 * (shape.nodes - 1) * (n / all), "bytes between",
                         n);
        }
        // Leaves of 16 bits.
        std::vector<device::Bfloat16> narrow(static_cast<std::size_t>(n));
        for (std::int64_t i = 0; i < n; ++i)
          narrow[static_cast<std::size_t>(i)] = {
              static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(full[static_cast<std::size_t>(i)]) >> 16)};
        std::vector<float> flat(mine.size());
        group.reduce_scatter(view(narrow.data(), n), view(flat.data(), own.size()), "flat sum")->wait();
        nodes->reduce_scatter(view(narrow.data(), n), view(mine.data(), own.size()), "narrow sum");
        for (std::size_t i = 0; i < mine.size(); ++i)
          cases::require_bits(mine[i], flat[i], "narrow sum", static_cast<std::int64_t>(i));
      }
    }));
  }
}

}  // namespace
}  // namespace zs::comm
