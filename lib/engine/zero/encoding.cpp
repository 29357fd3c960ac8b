// SPDX-License-Identifier: Apache-2.0
#include "zero/encoding.hpp"

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
                     all = at::empty({group_->size() * own_largest.numel()}, own_largest.options());
    codec_.largest(mine, group_->rank(), device::view(own_largest));
    group_->all_gather(device::view(own_largest), device::view(all), "all-gather of the scales of " + name_)->wait();
    largest_.copy_(all.view({group_->size(), -1}).amax(0));
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

}  // namespace zs::zero
