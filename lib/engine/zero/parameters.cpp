// SPDX-License-Identifier: Apache-2.0
#include "zero/parameters.hpp"

#include <stdexcept>

#include "device/tensor.hpp"
#include "zero/encoding.hpp"

namespace zs::zero {
namespace {

std::vector<std::vector<at::Tensor>> leaves_of(const unit::Unit& unit, const at::Tensor& flat, const Packed& packed,
                                               int chunks) {
  std::vector<std::vector<at::Tensor>> leaves(static_cast<std::size_t>(chunks));
  for (auto& tensors : leaves) {
    for (std::size_t i = 0; i < unit.parameters().size(); ++i) {
      const unit::Parameter& parameter = unit.parameters()[i];
      const bool dense = parameter.packing == unit::Parameter::Packing::none;
      tensors.push_back((dense ? unit::view(parameter, flat) : packed.view(i)).detach());
      tensors.back().requires_grad_(parameter.trained);
    }
  }
  return leaves;
}

}  // namespace

at::Tensor gather(comm::Group& group, const device::View& mine, std::int64_t numel, const std::string& what) {
  if (!(mine.device == group.device())) throw std::logic_error(what + ": it is not on the device of the ranks");
  const at::Tensor whole = at::empty({numel}, device::options(mine.device, device::torch_type(mine.type)));
  if (mine.count == numel)
    device::copy(device::view(whole), mine);
  else
    group.all_gather(mine, device::view(whole), what)->wait();
  return whole;
}

Parameters::Parameters(const unit::Unit& unit, comm::Group& group, Pool& pool, const Layout& layout,
                       const Places& places)
    : name_(unit.name()),
      group_(&group),
      pool_(&pool),
      secondary_pool_(places.secondary),
      layout_(layout),
      flat_(device::placeholder(layout.dense(), device::torch_type(layout.type), group.device())),
      encoding_(encoding(unit, group, layout)),
      packed_(unit, group, pool, layout, places.workspace),
      leaves_(leaves_of(unit, flat_, packed_, layout.chunks)),
      tied_(leaves_of(unit, flat_, packed_, layout.chunks)) {
  if (secondary_pool_) {
    const comm::Group& secondary_group = secondary_pool_->group();
    secondary_ = secondary_pool_->take(
        layout.type, comm::slice(layout.numel, secondary_group.rank(), secondary_group.size()).size());
  }
  if (sharded() && places.shards.store) {
    offloadable_.emplace(places.shards, "parameters of " + unit.name(), group.device(),
                         layout.shard() * device::size(layout.type));
  } else if (sharded()) {
    take_shard();
  } else {
    whole_ = pool.take(layout.type, layout.dense());
    device::point_at(flat_, whole_.data());
  }
}

bool Parameters::take_shard() {
  if (!sharded() || offloadable_ || slice_) return false;
  slice_ = pool_->take(layout_.type, layout_.shard());
  return true;
}

device::View Parameters::shard_memory() const {
  const device::Buffer& shard = offloadable_ ? offloadable_->memory() : slice_;
  return {shard.data(), layout_.shard(), layout_.type, group_->device()};
}

device::View Parameters::part(const device::Buffer& buffer, bool frozen) const {
  return frozen ? view(buffer).part(layout_.trained, layout_.dense()) : view(buffer).part(0, layout_.trained);
}

device::View Parameters::slice(bool frozen) const {
  const std::int64_t trained = layout_.slice.size();
  if (sharded()) return frozen ? shard_memory().part(trained, layout_.shard()) : shard_memory().part(0, trained);
  const comm::Slice kept = frozen ? layout_.frozen : layout_.owned;
  return view(whole_).part(kept.begin, kept.end);
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
  const at::Tensor trained = gathered(/*frozen=*/false);
  if (layout_.trained < layout_.numel) return at::cat({trained.to(at::kFloat), frozen()});
  return (encoding_ ? encoding_->travelled(trained.to(at::kCPU)) : trained).to(at::kFloat);
}

at::Tensor Parameters::gathered(bool frozen) const {
  const std::int64_t count = frozen ? layout_.dense() - layout_.trained : layout_.trained;
  if (count == 0) return at::empty({0}, device::options(group_->device(), device::torch_type(layout_.type)));
  return gather(*group_, sharded() ? slice(frozen) : part(whole_, frozen), count,
                "all-gather of the parameters of " + name_);
}

at::Tensor Parameters::frozen() {
  std::optional<ScopedLoad> loaded;
  if (offloadable_) loaded.emplace(*offloadable_);
  const at::Tensor dense = gathered(/*frozen=*/true).to(at::kFloat);
  return packed_.empty() ? dense : at::cat({dense, packed_.values()});
}

void Parameters::start_gather() {
  const std::vector<comm::Gathered> operands = ready_to_gather();
  if (!operands.empty()) is_gathered_by(group_->all_gather_coalesced(operands, "all-gather of " + name_));
}

std::vector<comm::Gathered> Parameters::ready_to_gather() {
  if (group_->size() == 1 && !sharded()) return {};
  if (sharded()) pending_whole_ = pool_->take(layout_.type, layout_.dense());
  if (offloadable_) {
    loaded_to_gather_ = !offloadable_->memory();
    offloadable_->load();
  }
  if (encoding_) {
    encoded_ = pool_->take(encoding_->bytes());
    return {{encoding_->encode(owned(), encoded()), encoded()}};
  }
  if (group_->size() == 1) {
    device::copy(view(pending_whole_), shard_memory());
    return {};
  }
  std::vector<comm::Gathered> gathers;
  // A frozen part is the same on every rank as long as it is whole.
  for (const bool frozen : {false, true}) {
    const device::View whole = part(sharded() ? pending_whole_ : whole_, frozen);
    if (whole.count > 0 && (sharded() || !frozen)) gathers.push_back({slice(frozen), whole});
  }
  if (const auto bytes = packed_.ready_to_gather()) gathers.push_back(*bytes);
  return gathers;
}

device::View Parameters::secondary() const {
  return secondary_.view(layout_.type, secondary_.bytes() / device::size(layout_.type));
}

void Parameters::partition() {
  const comm::Group& secondary_group = secondary_pool_->group();
  const comm::Slice mine = comm::slice(layout_.numel, secondary_group.rank(), secondary_group.size());
  device::copy(secondary(), view(whole_).part(mine.begin, mine.end));
}

void Parameters::start_gather_secondary() {
  pending_whole_ = pool_->take(layout_.type, layout_.numel);
  gather_ = secondary_pool_->group().all_gather(secondary(), view(pending_whole_),
                                                "all-gather of " + name_ + " from the secondary partition");
}

void Parameters::self_test() {
  const comm::Codec* const rounding = encoding_ ? encoding_->rounding() : nullptr;
  if (!rounding) return;
  std::optional<ScopedLoad> loaded;
  if (offloadable_) loaded.emplace(*offloadable_);
  const device::Buffer memory = device::allocate(group_->device(), layout_.numel * device::size(layout_.type));
  group_->all_gather(owned(), view(memory), "all-gather of " + name_ + ", exact")->wait();
  const device::Buffer bounds = device::allocate(group_->device(), layout_.numel * device::size(device::Type::float32));
  const device::View bound = bounds.view(device::Type::float32, layout_.numel);
  rounding->bound(view(memory), {0, comm::kTiles}, bound);
  require_within(*group_, {"parameters of " + name_, 0, view(whole_), view(memory), bound});
}

void Parameters::finish_gather() {
  if (gather_) gather_->wait();
  gather_.reset();
  if (!pending_whole_) return;
  if (loaded_to_gather_) offloadable_->drop();
  loaded_to_gather_ = false;
  if (encoded_) {
    encoding_->decode(encoded(), view(pending_whole_));
    encoded_.reset();
  }
  whole_ = std::move(pending_whole_);
  device::point_at(flat_, whole_.data());
}

void Parameters::release() {
  if (!sharded()) return;
  device::point_at(flat_, nullptr);
  whole_.reset();
  packed_.release();
}

}  // namespace zs::zero
