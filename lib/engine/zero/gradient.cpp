// SPDX-License-Identifier: Apache-2.0
#include "zero/gradient.hpp"

#include <iterator>

#include "base/error.hpp"
#include "device/tensor.hpp"
#include "zero/encoding.hpp"

namespace zs::zero {

using device::Type;
using device::View;

Gradient::Gradient(const unit::Unit& unit, comm::Group& group, Pool& pool, const Layout& layout)
    : unit_(&unit), group_(&group), pool_(&pool), layout_(layout) {
  if (layout.gradient_bits > 0) codec_.emplace(layout.gradient_bits, layout.trained);
}

void Gradient::require(bool holds, const char* call) const {
  if (!holds) throw Error("the gradient of " + unit_->name() + " is not in a state for " + call);
}

View Gradient::take(device::Buffer& memory, Type type, std::int64_t count) {
  memory = pool_->take(type, count);
  return memory.view(type, count);
}

std::vector<std::vector<at::Tensor>> Gradient::leaf(int chunks) {
  require((state_ == State::none || state_ == State::leaf) && !joined_, "backward");
  const bool several = chunks > 1;
  if (state_ == State::none) {
    if (several) chunks_.resize(static_cast<std::size_t>(chunks));
    for (int chunk = 0; chunk < chunks; ++chunk) {
      device::Buffer& memory = several ? chunks_[static_cast<std::size_t>(chunk)] : memory_;
      value_ = take(memory, layout_.type, layout_.trained);
      device::clear(value_);
    }
    state_ = State::leaf;
  }
  std::vector<std::vector<at::Tensor>> into;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const at::Tensor flat =
        device::tensor(several ? chunks_[static_cast<std::size_t>(chunk)].view(layout_.type, layout_.trained) : value_);
    into.emplace_back();
    for (const unit::Parameter& parameter : unit_->parameters())
      into.back().push_back(parameter.trained ? unit::view(parameter, flat) : at::Tensor());
  }
  return into;
}

void Gradient::join(const plan::Shape& shape, std::int64_t first) {
  if (chunks_.empty()) return;
  require(state_ == State::leaf, "the sum of chunks");
  joined_.emplace(layout_.trained, shape.leaves(), [this](std::int64_t bytes) { return pool_->take(bytes); });
  for (device::Buffer& chunk : chunks_) {
    joined_->add({first, first + 1}, chunk.view(layout_.type, layout_.trained));
    chunk.reset();
    ++first;
  }
  chunks_.clear();
  value_ = joined_->sums().front();
}

std::vector<View> Gradient::parts() const {
  if (added_) return tree_->sums();
  if (joined_ && state_ == State::leaf) return joined_->sums();
  if (state_ != State::shard || sums_.size() <= 1) return {value_};
  return comm::parts_of_sums(value_, sums_.size(), layout_.slice, layout_.slice);
}

void Gradient::accumulate(const plan::Shape& shape, int micro) {
  require(state_ == State::leaf || state_ == State::shard, "accumulate");
  if (shape.micro_steps == 1) return;  // it is the sum
  if (!tree_) {
    const std::int64_t count = state_ == State::leaf ? layout_.trained : value_.count / std::ssize(sums_);
    tree_.emplace(count, shape.leaves(), [this](std::int64_t bytes) { return pool_->take(bytes); });
  }
  bool last = micro + 1 == shape.micro_steps;
  const std::vector<View> terms = parts();
  if (state_ == State::leaf) {
    const std::int64_t leaf = plan::leaf(shape, group_->rank(), micro);
    const std::vector<tree::Leaves> nodes = joined_ ? joined_->nodes() : std::vector{tree::Leaves{leaf, leaf + 1}};
    for (std::size_t i = 0; i < terms.size(); ++i) tree_->add(nodes[i], terms[i]);
    last = last || plan::leaf(shape, group_->rank(), micro + 1) < 0;
  } else {
    for (std::size_t i = 0; i < terms.size(); ++i) tree_->add(sums_[i], terms[i]);
    sums_ = tree_->nodes();
  }
  memory_.reset(), joined_.reset();
  added_ = last;
  if (last)
    value_ = tree_->sums().front();
  else
    state_ = State::none;
}

void Gradient::start_reduce(const plan::Shape& shape, int micro) {
  const bool sums = (micro < 0 && shape.micro_steps > 1) || shape.chunks_of_rank() > 1;
  comm::Summands summands{layout_.trained, sums ? Type::float32 : layout_.type, plan::addends(shape, micro)};
  const auto count = summands.addends.terms[static_cast<std::size_t>(group_->rank())].size();
  if (count > 0 || state_ != State::none) summands.terms = parts();
  require(state_ == (count > 0 ? State::leaf : State::none) && summands.terms.size() == count, "reduce");
  state_ = State::reducing;
  added_ = false;
  sums_ = summands.addends.sums;
  const View source = count > 0 ? summands.terms.front() : View{};
  // A GPU's norm and update widen the one leaf of one rank themselves.
  if (group_->size() == 1 && source.type != Type::float32 && !codec_ && source.device.kind != device::Device::Kind::cpu)
    return;
  // A whole float32 gradient that is kept until the update is reduced in place.
  const bool whole = !layout_.divided.gradients && sums_.size() == 1;
  const bool in_place = count > 0 && source.type == Type::float32 && whole;
  if (in_place)
    value_ = source.part(layout_.slice.begin, layout_.slice.end);
  else if (!layout_.divided.optimizer_state && whole)
    value_ = take(reduced_, Type::float32, layout_.trained).part(layout_.slice.begin, layout_.slice.end);
  else
    value_ = take(reduced_, Type::float32, layout_.slice.size() * std::ssize(sums_));
  leaf_ = source;
  if (codec_) return start_encoded_reduce();
  if (group_->size() == 1 && in_place) return;
  work_ = group_->reduce_scatter(summands, value_, "reduce-scatter of " + unit_->name());
}

void Gradient::start_encoded_reduce() {
  const auto bytes = [&](const device::Buffer& buffer) { return buffer.view(Type::byte, codec_->bytes()); };
  encoded_ = pool_->take(codec_->bytes());
  received_ = pool_->take(codec_->bytes());
  codec_->encode(leaf_, {0, comm::kTiles}, bytes(encoded_));
  work_ = group_->all_to_all(bytes(encoded_), bytes(received_), "all-to-all of the gradient of " + unit_->name());
}

/// The leaves' slices, as numbers again, in the order of the canonical tree.
void Gradient::add_encoded() {
  const comm::Slice tiles = comm::Codec::tiles(group_->rank(), group_->size());
  const std::int64_t ranks = group_->size(), part = codec_->bytes() / ranks, count = value_.count;
  const device::Buffer memory = pool_->take(Type::float32, ranks * count);
  std::vector<View> leaves;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    leaves.push_back(memory.view(Type::float32, ranks * count).part(rank * count, (rank + 1) * count));
    codec_->decode(received_.view(Type::byte, codec_->bytes()).part(rank * part, (rank + 1) * part), tiles,
                   leaves.back());
  }
  device::tree_sum(leaves, value_);
}

void Gradient::finish_reduce(bool self_test) {
  require(state_ == State::reducing, "the end of a reduction");
  state_ = State::shard;
  if (!work_) return;
  work_->wait();
  work_.reset();
  if (codec_) {
    // Both ways before the sum may take the leaf's place.
    std::optional<ExactSum> exact;
    if (self_test) exact.emplace(*group_, *codec_, leaf_, "the gradient of " + unit_->name());
    add_encoded();
    encoded_.reset(), received_.reset();
    if (exact)
      require_within(*group_,
                     {"gradient of " + unit_->name(), layout_.slice.begin, value_, exact->sum(), exact->bound()});
  }
  leaf_ = {};
  if (!reduced_) return;
  memory_ = std::move(reduced_);
  joined_.reset();
}

void Gradient::start_gather() {
  require(state_ == State::shard, "gather");
  state_ = State::gathering;
  added_ = false;
  const View shard = value_;
  if (layout_.divided.gradients)
    value_ = take(whole_, shard.type, layout_.trained);
  else
    value_ = {shard.data - layout_.slice.begin * device::size(shard.type), layout_.trained, shard.type, shard.device};
  if (group_->size() > 1) work_ = group_->all_gather(shard, value_, "all-gather of the gradient of " + unit_->name());
}

void Gradient::finish_gather() {
  require(state_ == State::gathering, "the end of a gather");
  state_ = State::whole;
  if (!work_) return;
  work_->wait();
  work_.reset();
}

void Gradient::drop() {
  state_ = State::none;
  value_ = {};
  memory_.reset(), whole_.reset();
  tree_.reset(), joined_.reset();
  added_ = false;
  sums_.clear();
}

at::Tensor Gradient::on_host() const {
  if (layout_.trained == 0) return at::empty({0});
  const auto host = [](const View& view) { return device::tensor(view).to(at::kCPU).to(at::kFloat); };
  const std::vector<View> terms = parts();
  at::Tensor joined = host(terms.back());
  for (std::size_t i = terms.size() - 1; i-- > 0;) joined = host(terms[i]) + joined;
  return joined;
}

at::Tensor Gradient::gather() {
  if (layout_.trained == 0) return at::empty({0});
  return zero::gather(*group_, value_, layout_.trained, "all-gather of the gradient of " + unit_->name())
      .to(at::kFloat);
}

void Gradient::flip_bit(std::int64_t element) {
  const comm::Slice held = value_.count == layout_.trained ? comm::Slice{0, layout_.trained} : layout_.slice;
  if (element < held.begin || element >= held.end) return;
  device::flip_lowest_bit(value_.part(element - held.begin, element - held.begin + 1));
}

}  // namespace zs::zero
