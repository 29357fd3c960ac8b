// SPDX-License-Identifier: Apache-2.0
// Loads that begin early take the memory that activations leave, and never more.
#include "zero/optimizer_prefetcher.hpp"

#include <doctest/doctest.h>

#include <map>

namespace zs::zero {
namespace {

constexpr std::int64_t kBlock = 100;

/// Blocks of a GPU as far as OptimizerPrefetcher can see: what it began, what it was allowed, and what is on its way.
class Seen final : public Store {
 public:
  Seen() : Store({}) {}
  int add(const std::string&, std::int64_t bytes) override {
    added(bytes);
    return blocks++;
  }
  void start_load(int block) override {
    began.push_back(block);
    on_its_way += kBlock;
  }
  device::Buffer fetch(int, std::int64_t bytes) override { return device::allocate({}, bytes); }
  void finish_load(int, const device::View&) override {}
  void start_store(int, const device::View&) override {}
  void plant(int, DiskFault) override {}
  void allow(std::int64_t bytes) override {
    allowed.push_back(bytes);
    on_its_way = std::min(on_its_way, std::max<std::int64_t>(bytes, 0));  // the rest has gone home
  }
  std::int64_t lent() const override { return on_its_way; }

  int blocks = 0;
  std::int64_t on_its_way = 0;
  std::vector<int> began;
  std::vector<std::int64_t> allowed;
};

struct Snapshot {
  std::string op;
  std::int64_t level, on_its_way;
  std::size_t began;
};

/// A step's snapshots: forward of a unit keeps `kept` bytes, which its backward frees.
std::vector<Snapshot> step(OptimizerPrefetcher& ahead, Seen& store, std::vector<OffloadableBuffer>& states,
                           const plan::Plan& plan, std::int64_t& level, std::int64_t kept) {
  std::vector<Snapshot> snapshots;
  for (std::size_t at = 0; at < plan.ops.size(); ++at) {
    const plan::Op& op = plan.ops[at];
    ahead.before(plan, at, [&](int unit) -> OffloadableBuffer& { return states[static_cast<std::size_t>(unit)]; });
    snapshots.push_back({plan::to_text(op, plan), level, store.on_its_way, store.began.size()});
    if (op.kind == plan::Kind::forward) level += kept;
    if (op.kind == plan::Kind::backward) level -= kept;
    if (op.kind == plan::Kind::load && store.began.size() < static_cast<std::size_t>(op.unit) + 1)
      store.start_load(op.unit);
    if (op.kind == plan::Kind::store) store.on_its_way -= kBlock;
  }
  return snapshots;
}

/// Of each unit a block that lies in the store between steps.
std::vector<OffloadableBuffer> states_of(const plan::Shape& shape, Seen& store) {
  std::vector<OffloadableBuffer> states;
  for (const plan::Unit& unit : shape.units)
    states.emplace_back(Residency{&store, false}, unit.name, device::Device{}, kBlock);
  return states;
}

TEST_CASE("ahead: loads begin in the last backward, in the order of the updates, within what activations have left") {
  for (const int micro_steps : {1, 2}) {
    CAPTURE(micro_steps);
    plan::Shape shape;
    for (const char* name : {"a", "b", "c", "d"}) shape.units.push_back({name, 10, -1});
    shape.micro_steps = micro_steps;
    shape.offload_optimizer = true;
    const plan::Plan plan = plan::baseline(shape);
    Seen store;
    std::vector<OffloadableBuffer> states = states_of(shape, store);
    std::int64_t level = 1000;
    OptimizerPrefetcher ahead(store, [&] { return level + store.lent(); });
    for (int round = 0; round < 3; ++round) {
      store.began.clear();
      const std::vector<Snapshot> snapshots = step(ahead, store, states, plan, level, 150);
      // 4 forwards take the device from 1000 to 1600: what travels never takes it beyond.
      std::size_t before_norm = 0;
      std::string last_forward;
      for (const Snapshot& snapshot : snapshots) {
        CAPTURE(snapshot.op);
        if (snapshot.op.starts_with("norm")) break;
        CHECK(snapshot.level + snapshot.on_its_way <= 1600);
        if (snapshot.op.starts_with("forward")) {
          CHECK(snapshot.began == 0);
          last_forward = snapshot.op;
        }
        before_norm = snapshot.began;
      }
      CHECK(last_forward == "forward d @" + std::to_string(micro_steps - 1));
      CHECK(before_norm >= 3);  // 450 bytes were free before the last backward
      CHECK(store.began == std::vector{0, 1, 2, 3});
    }
  }
}

TEST_CASE("ahead: without room nothing begins before its time, and what goes home must go") {
  plan::Shape shape;
  for (const char* name : {"a", "b"}) shape.units.push_back({name, 10, -1});
  shape.offload_optimizer = true;
  const plan::Plan plan = plan::baseline(shape);
  Seen store;
  std::vector<OffloadableBuffer> states = states_of(shape, store);
  std::int64_t level = 1000;
  OptimizerPrefetcher ahead(store, [&] { return level + store.lent(); });
  const std::vector<Snapshot> snapshots = step(ahead, store, states, plan, level, 40);
  for (const Snapshot& snapshot : snapshots) {
    if (snapshot.op.starts_with("norm")) CHECK(snapshot.began == 1);  // where the plan has it
  }
  CHECK(store.began == std::vector{0, 1});
  for (const std::int64_t bytes : store.allowed) CHECK(bytes <= 80);
}

}  // namespace
}  // namespace zs::zero
