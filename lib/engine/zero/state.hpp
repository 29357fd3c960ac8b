// SPDX-License-Identifier: Apache-2.0
// One rank's state of one unit: parameters, gradient, optimizer
// state, and the activations of the current micro-step.
#pragma once
#include <functional>
#include <memory>

#include "unit/kept.hpp"
#include "zero/gradient.hpp"
#include "zero/optimizer.hpp"
#include "zero/parameters.hpp"
#include "zero/stored_input.hpp"

namespace zs::zero {

/// Fills float32[layout.kept_numel()] on the host with a rank's part of a unit, one slice after another; the layout's
/// element 0 is the unit's element `begin`.
void fill_kept(const Layout& layout, std::int64_t begin, const at::Tensor& values, const Fill& fill);

class UnitState {
 public:
  using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(const Layout& layout, const device::View& parameters)>;
  /// COLLECTIVE: takes permanent memory from the pool. Does not set parameters.
  UnitState(const unit::Unit& unit, comm::Group& group, Pool& pool, const Layout& layout, const MakeOptimizer& make,
            const Places& places = {});

  /// From here on it is elements [begin, begin + its own) of `whole`, which the ranks of `sharing` divide in their
  /// order. Elements are counted in the whole. The unit and the group outlive it.
  void is_part_of(const unit::Unit& whole, std::int64_t begin, comm::Group& sharing) {
    whole_ = &whole, begin_ = begin, sharing_ = &sharing;
  }
  bool is_part() const { return sharing_ != nullptr; }

  /// The whole unit.
  const unit::Unit& unit() const { return *whole_; }
  std::int64_t numel() const { return whole_->numel(); }
  /// For the part that this rank computes with; its elements are counted from 0.
  const Layout& layout() const { return layout_; }
  /// That part: the unit, unless ranks divide it.
  comm::Slice part() const { return {begin_, begin_ + layout_.numel}; }
  /// The part of the unit's flat buffer that this rank owns: all trained elements in stage 0.
  comm::Slice owned() const { return {begin_ + layout_.owned.begin, begin_ + layout_.owned.end}; }
  /// This rank's share of the trained elements, in every stage.
  comm::Slice slice() const { return {begin_ + layout_.slice.begin, begin_ + layout_.slice.end}; }

  /// Sets dense parameters to the values of `fill`: requests only the elements that this rank keeps.
  void set_parameters(const Fill& fill);
  /// The same from float32[layout().kept_numel()] on the host, as fill_kept() fills it.
  void set_kept(const at::Tensor& values);
  /// Elements that are trained.
  std::int64_t trained() const { return whole_->trained(); }
  /// The whole float32[numel] from the masters of all ranks, on the host; what is frozen as it is computed with.
  /// COLLECTIVE.
  at::Tensor gather_parameters() { return whole_parameters().to(at::kCPU); }
  /// The same on the group's device.
  at::Tensor whole_parameters();
  /// The masters of the owned part, on the host: a copy, or a tensor over their memory.
  at::Tensor masters();
  /// Shows them to `see` where they are computed with, loaded for as long.
  void see_masters(const std::function<void(const device::View& masters)>& see);
  /// Loads its offloaded state into device memory, until the plan stores it.
  void load();
  /// Bytes of movable state currently in device memory: optimizer state, a movable shard, the kept input.
  std::int64_t bytes_here();
  /// One update of the owned part.
  void update(const Update& update);
  /// Called instead of update() if the update is left out.
  void keep();
  /// The sum over all leaves, whole, as float32[trained] on the host, between its reduction and the update. COLLECTIVE.
  at::Tensor gather_gradient() { return all_parts(gradient.gather()).to(at::kCPU); }
  /// Parameters::whole() of the whole unit. COLLECTIVE.
  at::Tensor computed_with() { return all_parts(parameters.whole()).to(at::kCPU); }

  Parameters parameters;
  Gradient gradient;
  std::unique_ptr<Optimizer> optimizer;
  at::Tensor input, output;          ///< activations; set and cleared by the executor
  at::Tensor beside, beside_output;  ///< the same for the sums next to them (unit::ForwardContext)
  StoredInput stored_input;          ///< the input, while it is moved out
  unit::Kept kept;                   ///< results of its first forward for the second

 private:
  const unit::Unit* whole_;
  comm::Group* group_;
  Layout layout_;
  std::int64_t begin_ = 0;
  comm::Group* sharing_ = nullptr;

  /// The parts of all ranks that divide the unit, on the device of `part` if that part is the whole unit. COLLECTIVE.
  at::Tensor all_parts(const at::Tensor& part) const;
};

}  // namespace zs::zero
