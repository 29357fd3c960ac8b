// SPDX-License-Identifier: Apache-2.0
#include "verify/arithmetic.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include "comm/float8_codec.hpp"
#include "model/model.hpp"

namespace zs::verify {
namespace {

TEST_CASE("float8: what the definition brings is what the codec brings, of every family's block") {
  for (const std::string name : {"tiny", "tiny-llama", "tiny-phi3", "tiny-mixtral"}) {
    CAPTURE(name);
    const model::Model made = model::make({.name = name});
    const unit::Unit& block = *made.units[1];
    std::vector<comm::Float8Codec::Weights> weights;
    for (const unit::Parameter& parameter : block.parameters()) {
      if (parameter.float8_scale >= 0)
        weights.push_back({parameter.offset, parameter.offset + parameter.numel(), parameter.float8_scale});
    }
    CHECK(weights.size() >= 2);
    const at::Tensor flat = at::randn({block.numel()}).mul(0.02).to(at::kBFloat16);
    const at::Tensor brought = comm::Float8Codec(weights, block.numel(), 3).travelled(flat);
    CHECK_FALSE(at::equal(brought, flat));
    std::vector<at::Tensor> tensors = unit::views(block, flat), expected = unit::views(block, brought);
    as_float8(block.parameters(), tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      CAPTURE(block.parameters()[i].name);
      CHECK(at::equal(tensors[i], expected[i]));
    }
  }
}

}  // namespace
}  // namespace zs::verify
