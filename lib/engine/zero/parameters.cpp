// SPDX-License-Identifier: Apache-2.0
#include "zero/parameters.hpp"

#include "comm/agree.hpp"
#include "device/tensor.hpp"
#include "zero/quantized_check.hpp"

namespace zs::zero {
namespace {

std::vector<std::vector<at::Tensor>> leaves_of(const unit::Unit& unit, const at::Tensor& flat, int chunks) {
  std::vector<std::vector<at::Tensor>> leaves(static_cast<std::size_t>(chunks));
  for (auto& its : leaves) {
    for (const unit::Parameter& parameter : unit.parameters())
      its.push_back(unit::view(parameter, flat).detach().requires_grad_(parameter.trained));
  }
  return leaves;
}

std::vector<comm::Float8Codec::Weights> float8_weights(const unit::Unit& unit) {
  std::vector<comm::Float8Codec::Weights> all;
  for (const unit::Parameter& its : unit.parameters()) {
    if (its.float8_scale >= 0) all.push_back({its.offset, its.offset + its.numel(), its.float8_scale});
  }
  return all;
}

}  // namespace

at::Tensor gather(comm::Group& group, const device::View& mine, std::int64_t numel, const std::string& what) {
  const at::Tensor whole = at::empty({numel}, device::options(mine.device, device::torch_type(mine.type)));
  if (mine.count == numel)
    device::copy(device::view(whole), mine);
  else
    group.all_gather(mine, device::view(whole), what)->wait();
  return whole.to(at::kCPU);
}

Parameters::Parameters(const unit::Unit& unit, comm::Group& group, Pool& pool, const Layout& layout,
                       const Places& places)
    : name_(unit.name()),
      group_(&group),
      pool_(&pool),
      secondary_pool_(places.secondary),
      layout_(layout),
      flat_(device::placeholder(layout.numel, device::torch_type(layout.type), group.device())),
      leaves_(leaves_of(unit, flat_, layout.chunks)),
      tied_(leaves_of(unit, flat_, layout.chunks)) {
  if (layout.weight_bits > 0) codec_.emplace(layout.weight_bits, layout.numel);
  if (auto weights = float8_weights(unit); layout.float8_gathers && group.size() > 1 && !weights.empty()) {
    float8_.emplace(std::move(weights), layout.numel, group.size());
    largest_ = at::empty({float8_->scales()}, device::options(group.device(), at::kFloat));
  }
  if (secondary_pool_) {
    const comm::Group& its = secondary_pool_->group();
    secondary_ = secondary_pool_->take(layout.type, comm::slice(layout.numel, its.rank(), its.size()).size());
  }
  if (sharded() && places.shards.store) {
    offloadable_.emplace(places.shards, "parameters of " + unit.name(), group.device(),
                         layout.shard() * device::size(layout.type));
  } else if (sharded()) {
    slice_ = pool.take(layout.type, layout.shard());
  } else {
    whole_ = pool.take(layout.type, layout.numel);
    device::point_at(flat_, whole_.data());
  }
}

device::View Parameters::shard_memory() const {
  const device::Buffer& shard = offloadable_ ? offloadable_->memory() : slice_;
  return {shard.data(), layout_.shard(), layout_.type, group_->device()};
}

device::View Parameters::slice(bool frozen) const {
  const std::int64_t trained = layout_.slice.size();
  if (sharded()) return frozen ? shard_memory().part(trained, layout_.shard()) : shard_memory().part(0, trained);
  const comm::Slice its = frozen ? layout_.frozen : layout_.owned;
  return view(whole_).part(its.begin, its.end);
}

device::View Parameters::owned() const { return slice(/*frozen=*/false); }

void Parameters::set(const at::Tensor& values) {
  changed();
  if (offloadable_) offloadable_->load();
  device::copy(sharded() ? shard_memory() : view(whole_), device::view(values));
  if (offloadable_) offloadable_->put_back();
}

at::Tensor Parameters::whole() {
  std::optional<ScopedLoad> loaded;
  if (offloadable_) loaded.emplace(*offloadable_);
  const at::Tensor all = gathered(/*frozen=*/false);
  if (layout_.trained < layout_.numel) return at::cat({all, gathered(/*frozen=*/true)}).to(at::kFloat);
  if (codec_) {
    const at::Tensor bytes = at::empty({codec_->bytes()}, at::kByte);
    codec_->encode(device::view(all), {0, comm::kTiles}, device::view(bytes));
    codec_->decode(device::view(bytes), {0, comm::kTiles}, device::view(all));
  }
  return (float8_ ? float8_->travelled(all) : all).to(at::kFloat);
}

at::Tensor Parameters::gathered(bool frozen) const {
  const std::int64_t count = frozen ? layout_.numel - layout_.trained : layout_.trained;
  if (count == 0) return at::empty({0}, device::torch_type(layout_.type));
  return gather(*group_, sharded() ? slice(frozen) : part(whole_, frozen), count,
                "all-gather of the parameters of " + name_);
}

at::Tensor Parameters::frozen() {
  std::optional<ScopedLoad> loaded;
  if (offloadable_) loaded.emplace(*offloadable_);
  return gathered(/*frozen=*/true).to(at::kFloat);
}

void Parameters::start_gather() {
  const std::vector<comm::Gathered> operands = ready_to_gather();
  if (!operands.empty()) is_gathered_by(group_->all_gather_coalesced(operands, "all-gather of " + name_));
}

std::vector<comm::Gathered> Parameters::ready_to_gather() {
  if (group_->size() == 1 && !sharded()) return {};
  if (sharded()) pending_whole_ = pool_->take(layout_.type, layout_.numel);
  if (offloadable_) {
    loaded_to_gather_ = !offloadable_->memory();
    offloadable_->load();
  }
  if (codec_) return {encoded()};
  if (float8_) return {encoded_in_float8()};
  if (group_->size() == 1) {
    device::copy(view(pending_whole_), shard_memory());
    return {};
  }
  std::vector<comm::Gathered> all;
  // A frozen part is the same on every rank as long as it is whole.
  for (const bool frozen : {false, true}) {
    const device::View whole = part(sharded() ? pending_whole_ : whole_, frozen);
    if (whole.count > 0 && (sharded() || !frozen)) all.push_back({slice(frozen), whole});
  }
  return all;
}

comm::Gathered Parameters::encoded() {
  encoded_ = pool_->take(codec_->bytes());
  const comm::Slice tiles = comm::Codec::tiles(group_->rank(), group_->size());
  const device::View all = encoded_.view(device::Type::byte, codec_->bytes());
  const std::int64_t tile = codec_->bytes() / comm::kTiles;
  const device::View mine = all.part(tiles.begin * tile, tiles.end * tile);
  codec_->encode(owned(), tiles, mine);
  if (std::exchange(planted_, false)) {
    const device::View scale{mine.data, 1, device::Type::float32, mine.device};
    device::tensor(scale).mul_(2);
  }
  return {mine, all};
}

comm::Gathered Parameters::encoded_in_float8() {
  const int rank = group_->rank();
  if (!std::exchange(largest_known_, true)) {
    const at::Tensor mine = at::empty_like(largest_), all = at::empty({group_->size() * mine.numel()}, mine.options());
    float8_->largest(owned(), rank, device::view(mine));
    group_->all_gather(device::view(mine), device::view(all), "all-gather of the scales of " + name_)->wait();
    largest_.copy_(all.view({group_->size(), -1}).amax(0));
  }
  encoded_ = pool_->take(float8_->bytes());
  const device::View all = encoded_.view(device::Type::byte, float8_->bytes());
  const device::View mine = all.part(float8_->part(rank).begin, float8_->part(rank).end);
  float8_->encode(owned(), rank, device::view(largest_), mine);
  return {mine, all};
}

device::View Parameters::secondary() const {
  return secondary_.view(layout_.type, secondary_.bytes() / device::size(layout_.type));
}

void Parameters::partition() {
  const comm::Group& its = secondary_pool_->group();
  const comm::Slice mine = comm::slice(layout_.numel, its.rank(), its.size());
  device::copy(secondary(), view(whole_).part(mine.begin, mine.end));
}

void Parameters::start_gather_secondary() {
  pending_whole_ = pool_->take(layout_.type, layout_.numel);
  gather_ = secondary_pool_->group().all_gather(secondary(), view(pending_whole_),
                                                "all-gather of " + name_ + " from the secondary partition");
}

void Parameters::self_test() {
  if (!codec_) return;
  std::optional<ScopedLoad> loaded;
  if (offloadable_) loaded.emplace(*offloadable_);
  const device::Buffer memory = device::allocate(group_->device(), layout_.numel * device::size(layout_.type));
  group_->all_gather(owned(), view(memory), "all-gather of " + name_ + ", exact")->wait();
  const device::Buffer bounds = device::allocate(group_->device(), layout_.numel * device::size(device::Type::float32));
  const device::View bound = bounds.view(device::Type::float32, layout_.numel);
  codec_->bound(view(memory), {0, comm::kTiles}, bound);
  require_within(*group_, {"parameters of " + name_, 0, view(whole_), view(memory), bound});
}

void Parameters::finish_gather() {
  if (gather_) gather_->wait();
  gather_.reset();
  if (!pending_whole_) return;
  if (loaded_to_gather_) offloadable_->drop();
  loaded_to_gather_ = false;
  if (encoded_) {
    if (float8_)
      float8_->decode(encoded_.view(device::Type::byte, float8_->bytes()), device::view(largest_),
                      view(pending_whole_));
    else
      codec_->decode(encoded_.view(device::Type::byte, codec_->bytes()), {0, comm::kTiles}, view(pending_whole_));
    encoded_.reset();
  }
  whole_ = std::move(pending_whole_);
  device::point_at(flat_, whole_.data());
}

void Parameters::release() {
  if (!sharded()) return;
  device::point_at(flat_, nullptr);
  whole_.reset();
}

}  // namespace zs::zero
