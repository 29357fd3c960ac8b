// SPDX-License-Identifier: Apache-2.0
#include "zero/encoding.hpp"

#include "base/error.hpp"
#include "base/number.hpp"
#include "comm/agree.hpp"
#include "comm/float8_codec.hpp"
#include "device/tensor.hpp"

namespace zs::zero {
namespace {

using device::View;

class Integers : public Encoding {
 public:
  Integers(int bits, std::int64_t numel, const comm::Group& group)
      : codec_(bits, numel), tiles_(comm::Codec::tiles(group.rank(), group.size())) {}

  std::int64_t bytes() const override { return codec_.bytes(); }
  View encode(const View& mine, const View& bytes) override {
    const std::int64_t tile = codec_.bytes() / comm::kTiles;
    const View part = bytes.part(tiles_.begin * tile, tiles_.end * tile);
    codec_.encode(mine, tiles_, part);
    if (std::exchange(planted_, false)) device::tensor(View{part.data, 1, device::Type::float32, part.device}).mul_(2);
    return part;
  }
  void decode(const View& bytes, const View& numbers) const override { codec_.decode(bytes, kAll, numbers); }
  at::Tensor travelled(const at::Tensor& numbers) const override {
    const at::Tensor bytes = at::empty({codec_.bytes()}, at::kByte), out = at::empty_like(numbers);
    codec_.encode(device::view(numbers), kAll, device::view(bytes));
    codec_.decode(device::view(bytes), kAll, device::view(out));
    return out;
  }
  const comm::Codec* rounding() const override { return &codec_; }
  void plant_scale() override { planted_ = true; }

 private:
  static constexpr comm::Slice kAll{0, comm::kTiles};
  comm::Codec codec_;
  comm::Slice tiles_;
  bool planted_ = false;
};

class OfProducts : public Encoding {
 public:
  OfProducts(std::vector<comm::Float8Codec::Weights> weights, std::int64_t numel, comm::Group& group, std::string name)
      : codec_(std::move(weights), numel, group.size()),
        group_(&group),
        name_(std::move(name)),
        largest_(at::empty({codec_.scales()}, device::options(group.device(), at::kFloat))) {}

  std::int64_t bytes() const override { return codec_.bytes(); }
  View encode(const View& mine, const View& bytes) override {
    const int rank = group_->rank();
    if (!std::exchange(largest_known_, true)) find_largest(mine);
    const View part = bytes.part(codec_.part(rank).begin, codec_.part(rank).end);
    codec_.encode(mine, rank, device::view(largest_), part);
    return part;
  }
  void decode(const View& bytes, const View& numbers) const override {
    codec_.decode(bytes, device::view(largest_), numbers);
  }
  at::Tensor travelled(const at::Tensor& numbers) const override { return codec_.travelled(numbers); }
  void changed() override { largest_known_ = false; }

 private:
  comm::Float8Codec codec_;
  comm::Group* group_;
  std::string name_;
  at::Tensor largest_;  // magnitudes, by scale
  bool largest_known_ = false;

  void find_largest(const View& mine) {
    const at::Tensor own_largest = at::empty_like(largest_),
                     each = at::empty({group_->size() * own_largest.numel()}, own_largest.options());
    codec_.largest(mine, group_->rank(), device::view(own_largest));
    group_->all_gather(device::view(own_largest), device::view(each), "all-gather of the scales of " + name_)->wait();
    largest_.copy_(each.view({group_->size(), -1}).amax(0));
  }
};

}  // namespace

std::unique_ptr<Encoding> encoding(const unit::Unit& unit, comm::Group& group, const Layout& layout) {
  if (layout.weight_bits > 0) return std::make_unique<Integers>(layout.weight_bits, layout.numel, group);
  if (!layout.float8_gathers || group.size() == 1) return nullptr;
  std::vector<comm::Float8Codec::Weights> weights;
  for (const unit::Parameter& parameter : unit.parameters()) {
    if (parameter.float8_scale >= 0)
      weights.push_back({parameter.offset, parameter.offset + parameter.numel(), parameter.float8_scale});
  }
  if (weights.empty()) return nullptr;
  return std::make_unique<OfProducts>(std::move(weights), layout.numel, group, unit.name());
}

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
    const auto text = [&](const at::Tensor& scales) { return to_text(scales[at].item<float>()); };
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
