// SPDX-License-Identifier: Apache-2.0
#include "zero/gradient.hpp"

#include <doctest/doctest.h>

namespace zs::zero {
namespace {

struct GradientUnit final : unit::Unit {
  GradientUnit()
      : unit::Unit("u", {{.name = "gate", .shape = {6, 4}},
                         {.name = "frozen", .shape = {5}, .trained = false},
                         {.name = "up", .shape = {6, 4}}}) {}
  at::Tensor forward(const at::Tensor&, std::span<const at::Tensor>, std::span<const at::Tensor>,
                     const unit::ForwardContext&) const override {
    return {};
  }
};

TEST_CASE("gradient: adjacent parameters have theirs adjacent in one storage, where one product can write them") {
  for (const int chunks : {1, 2}) {
    CAPTURE(chunks);
    const GradientUnit unit;
    const std::unique_ptr<comm::Group> group = comm::single();
    Pool pool(*group);
    plan::Shape shape;
    shape.stage = 3, shape.ranks = 1, shape.chunks = chunks;
    Gradient gradient(unit, *group, pool, layout(unit, *group, shape, device::Type::bfloat16));
    const auto leaves = gradient.leaf(chunks);
    CHECK(std::ssize(leaves) == chunks);
    for (const std::vector<at::Tensor>& tensors : leaves) {
      CHECK_FALSE(tensors[1].defined());
      CHECK(tensors[2].storage().is_alias_of(tensors[0].storage()));
      CHECK(tensors[2].data_ptr() == static_cast<std::byte*>(tensors[0].data_ptr()) + tensors[0].nbytes());
      CHECK(tensors[0].count_nonzero().item<std::int64_t>() + tensors[2].count_nonzero().item<std::int64_t>() == 0);
    }
  }
}

}  // namespace
}  // namespace zs::zero
