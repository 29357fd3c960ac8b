// SPDX-License-Identifier: Apache-2.0
#include "zero/optimizer.hpp"

#include <algorithm>

#include "device/operations.hpp"
#include "device/tensor.hpp"

namespace zs::zero {
namespace {

class FusedAdamW final : public Optimizer {
 public:
  explicit FusedAdamW(const OptimizerOf& of)
      : Optimizer(of.name, of.parameters, of.updates ? 2 : 0, of.residency), adamw_(of.adamw), segments_(of.segments) {}

  at::Tensor exp_avg() override { return moment(0); }
  at::Tensor exp_avg_sq() override { return moment(1); }
  void restore(const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq, std::int64_t) override {
    state().load();
    device::tensor(own(0)).copy_(exp_avg);
    device::tensor(own(1)).copy_(exp_avg_sq);
    state().put_back();
  }

 private:
  AdamW adamw_;
  std::vector<Segment> segments_;

  at::Tensor moment(int index) {
    const ScopedLoad loaded(state());
    const at::Tensor numbers = device::tensor(own(index));
    return state().moves() ? numbers.clone() : numbers;
  }

  bool update_master(const Update& update, const device::View& gradient_sum, const device::View& master,
                     const device::View& rounded) override {
    const device::View m = own(0), v = own(1);
    for (const Segment& s : segments_) {
      const auto part = [&](const device::View& of) { return of.count > 0 ? of.part(s.begin, s.end) : of; };
      device::operations(master.device)
          .adamw(factors(adamw_, update.learning_rate, update.number, s.decay),
                 {part(master), part(m), part(v), part(gradient_sum), part(rounded)}, update.scale, update.clip);
    }
    return rounded.count > 0;
  }
};

}  // namespace

Optimizer::Optimizer(const std::string& name, const device::View& parameters, int kept, const Residency& residency)
    : has_master_(parameters.type != device::Type::float32),
      count_(parameters.count),
      device_(parameters.device),
      state_(residency, "optimizer state of " + name, parameters.device,
             count_ * (kept + has_master_) * device::size(device::Type::float32)) {}

device::View Optimizer::numbers(int index) const {
  return {state_.memory().data() + index * count_ * device::size(device::Type::float32), count_, device::Type::float32,
          device_};
}

device::View Optimizer::own(int index) const { return numbers(index + has_master_); }

device::View Optimizer::master(const device::View& parameters) const { return has_master_ ? numbers(0) : parameters; }

void Optimizer::set(const device::View& values) {
  if (!has_master_) return;
  state_.load();
  device::copy(numbers(0), values);
  state_.put_back();
}

void Optimizer::update(const Update& update, const device::View& gradient_sum, const device::View& parameters) {
  const device::View its = master(parameters);
  const bool narrow = has_master_ && parameters.type == device::Type::bfloat16;
  const bool rounded = update_master(update, gradient_sum, its, narrow ? parameters : device::View{});
  if (has_master_ && !rounded) device::copy(parameters, its);
}

std::vector<Segment> segments(const unit::Unit& unit, comm::Slice owned, bool decay_all) {
  std::vector<Segment> all;
  for (const unit::Parameter& parameter : unit.parameters()) {
    const std::int64_t begin = std::max(parameter.offset, owned.begin),
                       end = std::min(parameter.offset + parameter.numel(), owned.end);
    if (begin >= end) continue;
    const bool decay = decay_all || parameter.decay;
    // Neighbours that decay alike are one: a GPU updates them by one kernel.
    if (!all.empty() && all.back().decay == decay && all.back().end == begin - owned.begin)
      all.back().end = end - owned.begin;
    else
      all.push_back({begin - owned.begin, end - owned.begin, decay});
  }
  return all;
}

std::unique_ptr<Optimizer> fused_adamw(const OptimizerOf& of) { return std::make_unique<FusedAdamW>(of); }

}  // namespace zs::zero
