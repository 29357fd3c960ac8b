// SPDX-License-Identifier: Apache-2.0
// What a rank holds of a unit, without a model: every state of a gradient with its value and its memory, parameters
// that come and go, masters of 16-bit parameters.
#include "zero/state.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>

#include "base/error.hpp"
#include "device/tensor.hpp"

namespace zs::zero {
namespace {

using device::Type;
using State = Gradient::State;

constexpr std::int64_t kNumel = 203;  // no multiple of any rank count

class StateUnit final : public unit::Unit {
 public:
  StateUnit() : unit::Unit("u", {{"a", {3, 41}}, {"b", {80}, unit::Parameter::Init::zeros}}) {}
  at::Tensor forward(const at::Tensor&, std::span<const at::Tensor>, std::span<const at::Tensor>,
                     const unit::ForwardContext&) const override {
    return {};
  }
};

/// A leaf's gradient: values whose sum depends on the order, as the type keeps them.
at::Tensor leaf_values(std::int64_t leaf, Type type) {
  const at::Tensor i = at::arange(kNumel, at::kDouble);
  return at::sin(i * 12.9898 + static_cast<double>(leaf) * 78.233)
      .mul(1000)
      .to(device::torch_type(type))
      .to(at::kFloat);
}

/// The canonical sum over leaves [begin, begin + count).
at::Tensor tree(std::int64_t begin, std::int64_t count, Type type) {
  if (count == 1) return leaf_values(begin, type);
  const auto half = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(count - 1)));
  return tree(begin, half, type) + tree(begin + half, count - half, type);
}

/// Rank and memory of one gradient.
struct Fixture {
  Fixture(comm::Group& its_group, int stage, Type type = Type::float32, std::int64_t leaves = 0)
      : group(its_group),
        pool(group),
        shape(shape_of(stage, leaves == 0 ? group.size() : leaves)),
        layout(zero::layout(unit, group, shape, type)),
        gradient(unit, group, pool, layout) {}

  plan::Shape shape_of(int stage, std::int64_t leaves) const {
    plan::Shape step{{stage, group.size()}};
    step.divide(leaves);
    return step;
  }

  void backward(std::int64_t leaf) {
    const auto into = gradient.leaf(1).front();
    const auto from = unit::views(unit, leaf_values(leaf, layout.type));
    for (std::size_t i = 0; i < into.size(); ++i) into[i].add_(from[i]);
  }
  /// Of a micro-step, in stages 2 and 3.
  void reduce(int micro = 0) {
    gradient.start_reduce(shape, shape.divided().gradients ? micro : -1);
    gradient.finish_reduce();
  }
  void expect(const at::Tensor& whole) const {
    const comm::Slice held = gradient.state() == State::shard ? layout.slice : comm::Slice{0, kNumel};
    CHECK(gradient.value().type == Type::float32);
    CHECK(at::equal(gradient.on_host(), whole.narrow(0, held.begin, held.size())));
  }

  StateUnit unit;
  comm::Group& group;
  Pool pool;
  plan::Shape shape;
  Layout layout;
  Gradient gradient;
};

std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("gradient: the order of each stage ends with the canonical sum over all leaves, in every type") {
  for (const Type type : {Type::float32, Type::bfloat16, Type::float16}) {
    for (const int stage : {0, 1, 2, 3}) {
      for (const int ranks : {1, 2, 3, 4, 5, 7}) {
        for (const std::int64_t leaves : {1, 2, 4, 6, 7, 8, 12, 16}) {
          CAPTURE(stage);
          CAPTURE(ranks);
          CAPTURE(leaves);
          comm::run_in_process(ranks, [&](comm::Group& group) {
            Fixture f(group, stage, type, leaves);
            const int micro_steps = f.shape.micro_steps;
            CHECK(f.shape.leaves() == leaves);
            for (int step = 0; step < 2; ++step) {
              for (int micro = 0; micro < micro_steps; ++micro) {
                const std::int64_t leaf = plan::leaf(f.shape, group.rank(), micro);
                if (leaf >= 0) {
                  f.backward(leaf);
                  CHECK(f.gradient.state() == State::leaf);
                }
                if (stage >= 2) f.reduce(micro);
                if (stage >= 2 || leaf >= 0) f.gradient.accumulate(f.shape, micro);
                const bool last =
                    micro + 1 == micro_steps || (stage <= 1 && plan::leaf(f.shape, group.rank(), micro + 1) < 0);
                if (!last) CHECK(f.gradient.state() == State::none);
              }
              if (stage <= 1) f.reduce();
              CHECK(f.gradient.state() == State::shard);
              const at::Tensor expected = tree(0, leaves, type);
              f.expect(expected);
              if (stage == 0) {
                f.gradient.start_gather(), f.gradient.finish_gather();
                CHECK(f.gradient.state() == State::whole);
                f.expect(expected);
              }
              CHECK(at::equal(f.gradient.gather(), expected));
              f.gradient.drop();
            }
          });
        }
      }
    }
  }
}

TEST_CASE("gradient: what it owns in each state") {
  constexpr std::int64_t kWhole = kNumel * 4;
  comm::run_in_process(2, [&](comm::Group& group) {
    Fixture kept(group, 1);  // reduced in its place
    kept.backward(0);
    kept.reduce();
    CHECK(kept.pool.bytes() == kWhole);

    Fixture divided(group, 2);
    const std::int64_t slice = divided.layout.slice.size() * 4;
    divided.backward(0);
    CHECK(divided.pool.bytes() == kWhole);
    divided.reduce();
    CHECK(divided.pool.bytes() == kWhole + slice);
    const device::Buffer given_back = divided.pool.take(kWhole);  // the leaf's, which the shard does not need
    CHECK(divided.pool.bytes() == kWhole + slice);

    Fixture narrow(group, 2, Type::bfloat16);  // nothing of the whole is ever float32
    narrow.backward(0);
    CHECK(narrow.gradient.value().type == Type::bfloat16);
    narrow.reduce();
    CHECK(narrow.pool.bytes() == kWhole / 2 + slice);
    CHECK(group.bytes_sent() == (kNumel - narrow.layout.slice.size()) * (4 + 4 + 2));
  });
  const auto one = comm::single();
  Fixture alone(*one, 2);
  alone.backward(0);
  alone.reduce();
  alone.gradient.accumulate(alone.shape, 0);
  CHECK(alone.pool.bytes() == kWhole);  // nothing is copied
}

TEST_CASE("gradient: two contributions to one leaf add, as those of a tied head and its embedding do") {
  const auto group = comm::single();
  Fixture f(*group, 0);
  f.backward(3);
  f.backward(4);
  f.reduce();
  f.expect(leaf_values(3, Type::float32) + leaf_values(4, Type::float32));
}

TEST_CASE("gradient: an operation out of order is refused, and names the unit") {
  const auto group = comm::single();
  Fixture f(*group, 2);
  CHECK(refusal_of([&] { f.gradient.start_reduce(f.shape, 0); }) == "the gradient of u is not in a state for reduce");
  CHECK_FALSE(refusal_of([&] { f.gradient.accumulate(f.shape, 0); }).empty());
  CHECK_FALSE(refusal_of([&] { f.gradient.finish_reduce(); }).empty());
  f.backward(0);
  CHECK_FALSE(refusal_of([&] { f.gradient.start_gather(); }).empty());
  f.gradient.start_reduce(f.shape, 0);
  CHECK_FALSE(refusal_of([&] { f.gradient.leaf(1); }).empty());
  f.gradient.finish_reduce();
  CHECK_FALSE(refusal_of([&] { f.gradient.leaf(1); }).empty());
}

TEST_CASE("gradient: a flipped bit is one bit, on the rank that has the element") {
  for (const int stage : {0, 3}) {
    comm::run_in_process(2, [&](comm::Group& group) {
      Fixture f(group, stage);
      f.backward(group.rank());
      f.reduce();
      if (stage == 0) f.gradient.start_gather(), f.gradient.finish_gather();
      const at::Tensor before = f.gradient.gather();
      if (stage == 3 || group.rank() == 0) f.gradient.flip_bit(150);
      const at::Tensor after = f.gradient.gather();
      const bool seen = stage == 3 || group.rank() == 0;
      CHECK(before.ne(after).sum().item<std::int64_t>() == (seen ? 1 : 0));
      if (seen) CHECK(device::floats(after)[150] != device::floats(before)[150]);
    });
  }
}

TEST_CASE(
    "parameters: gathered for a while in stage 3, kept whole below; masters of 16 bits have memory of their own") {
  for (const Type type : {Type::float32, Type::bfloat16}) {
    for (const int stage : {0, 1, 3}) {
      CAPTURE(stage);
      comm::run_in_process(2, [&](comm::Group& group) {
        const StateUnit unit;
        Pool pool(group);
        UnitState state(
            unit, group, pool, layout(unit, group, plan::Shape{{stage, group.size()}}, type),
            [&unit](const Layout& layout, const device::View& parameters) {
              return fused_optimizer(
                  {.name = "u", .recipe = recipe({}, unit, false, layout.owned, true), .parameters = parameters});
            });
        const at::Tensor values = leaf_values(7, Type::float32);
        const at::Tensor rounded = values.to(device::torch_type(type)).to(at::kFloat);
        state.set_parameters([&](std::int64_t begin, std::span<float> part) {
          std::ranges::copy(device::floats(values).subspan(static_cast<std::size_t>(begin), part.size()), part.begin());
        });
        CHECK(at::equal(state.gather_parameters(), values));
        CHECK(at::equal(state.parameters.whole(), rounded));
        const auto leaves_are = [&](const at::Tensor& whole) {
          const auto expected = unit::views(unit, whole);
          for (std::size_t i = 0; i < expected.size(); ++i) {
            CHECK(at::equal(state.parameters.leaves()[i].detach().to(at::kFloat), expected[i]));
            CHECK(state.parameters.tied()[i].data_ptr() == state.parameters.leaves()[i].data_ptr());
          }
        };
        if (stage == 3) {
          state.parameters.start_gather(), state.parameters.finish_gather();
          leaves_are(rounded);
          state.parameters.release();
          CHECK(state.parameters.leaves()[0].data_ptr() == nullptr);
        } else {
          leaves_are(rounded);
        }
        CHECK(state.optimizer->has_master() == (type != Type::float32));
        const std::int64_t masters = type == Type::float32 ? 0 : 1;
        CHECK(state.optimizer->bytes() == state.owned().size() * 4 * (2 + masters));

        // An update reaches the parameters that are computed with, rounded once, on every rank.
        const at::Tensor gradient = leaf_values(8, Type::float32);
        state.optimizer->update({.learning_rate = 0.1},
                                device::view(gradient).part(state.owned().begin, state.owned().end),
                                state.parameters.owned());
        if (stage == 1) state.parameters.start_gather(), state.parameters.finish_gather();
        const at::Tensor updated = state.gather_parameters();
        CHECK_FALSE(at::equal(updated, values));
        CHECK(at::equal(state.parameters.whole(), updated.to(device::torch_type(type)).to(at::kFloat)));
      });
    }
  }
}

}  // namespace
}  // namespace zs::zero
