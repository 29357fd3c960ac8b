// SPDX-License-Identifier: Apache-2.0
#include "zero/quantized_check.hpp"

#include "base/error.hpp"
#include "base/number.hpp"
#include "comm/agree.hpp"
#include "device/tensor.hpp"

namespace zs::zero {

void require_within(comm::Group& group, const QuantizedCheck& both) {
  const at::NoGradGuard no_grad;
  const auto wide = [](const device::View& view) { return device::tensor(view).to(at::kCPU).to(at::kFloat); };
  const at::Tensor integers = wide(both.integers), exact = wide(both.exact), bound = wide(both.bound);
  comm::together(group, "self-test of the " + both.name, [&] {
    // A block with one number that is not finite is none of it: then the exact one, too, has such a number.
    const at::Tensor beyond = at::logical_and(integers.sub(exact).abs().gt(bound), exact.isfinite());
    const bool lost = !exact.isfinite().all().item<bool>() && integers.isfinite().all().item<bool>();
    if (!lost && !beyond.any().item<bool>()) return;
    const std::int64_t at =
        lost ? exact.isfinite().to(at::kByte).argmin().item<std::int64_t>()
             : integers.sub(exact).abs().sub(bound).masked_fill(beyond.logical_not(), -1).argmax().item<std::int64_t>();
    const auto text = [&](const at::Tensor& of) { return to_text(of[at].item<float>()); };
    throw Error("self-test: element " + to_text(both.begin + at) + " of the " + both.name + " came as " +
                text(integers) + " as integers, and as " + text(exact) +
                " exactly: rounding to integers explains a difference of " + text(bound) + " at most");
  });
}

ExactSum::ExactSum(comm::Group& group, const comm::Codec& codec, const device::View& leaf, const std::string& what)
    : count_(comm::slice(leaf.count, group.rank(), group.size()).size()),
      memory_(device::allocate(group.device(), 2 * count_ * device::size(device::Type::float32))) {
  group.reduce_scatter(leaf, sum(), "reduce-scatter of " + what + ", exact")->wait();
  const device::Buffer bounds = device::allocate(group.device(), leaf.count * device::size(device::Type::float32));
  const device::View leaf_bounds = bounds.view(device::Type::float32, leaf.count);
  codec.bound(leaf, {0, comm::kTiles}, leaf_bounds);
  group.reduce_scatter(leaf_bounds, bound(), "reduce-scatter of the bound of " + what)->wait();
}

}  // namespace zs::zero
