// SPDX-License-Identifier: Apache-2.0
#include "zero/optimizer.hpp"

#include <algorithm>

#include "device/operations.hpp"
#include "device/tensor.hpp"

namespace zs::zero {
namespace {

class FusedAdamW final : public Optimizer {
 public:
  FusedAdamW(const AdamW& adamw, std::vector<Segment> segments, const device::View& parameters)
      : Optimizer(parameters),
        adamw_(adamw),
        segments_(std::move(segments)),
        exp_avg_(at::zeros({parameters.count}, device::options(parameters.device))),
        exp_avg_sq_(at::zeros_like(exp_avg_)) {}

  at::Tensor exp_avg() override { return exp_avg_; }
  at::Tensor exp_avg_sq() override { return exp_avg_sq_; }
  void restore(const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq, std::int64_t) override {
    exp_avg_.copy_(exp_avg);
    exp_avg_sq_.copy_(exp_avg_sq);
  }

 private:
  AdamW adamw_;
  std::vector<Segment> segments_;
  at::Tensor exp_avg_, exp_avg_sq_;

  void update_master(const Update& update, const device::View& gradient_sum) override {
    const device::View m = device::view(exp_avg_), v = device::view(exp_avg_sq_);
    for (const Segment& s : segments_) {
      const auto part = [&](const device::View& of) { return of.part(s.begin, s.end); };
      device::operations(master().device)
          .adamw(factors(adamw_, update.learning_rate, update.number, s.decay),
                 {part(master()), part(m), part(v), part(gradient_sum)}, update.scale, update.clip);
    }
  }
};

}  // namespace

Optimizer::Optimizer(const device::View& parameters) : parameters_(parameters), master_(parameters) {
  if (parameters.type == device::Type::float32) return;
  memory_ = device::allocate(parameters.device, parameters.count * device::size(device::Type::float32));
  master_ = memory_.view(device::Type::float32, parameters.count);
}

void Optimizer::set(const device::View& values) { device::copy(master_, values); }

void Optimizer::update(const Update& update, const device::View& gradient_sum) {
  update_master(update, gradient_sum);
  device::copy(parameters_, master_);
}

std::int64_t Optimizer::bytes() {
  return memory_.bytes() + static_cast<std::int64_t>(exp_avg().nbytes() + exp_avg_sq().nbytes());
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

std::unique_ptr<Optimizer> fused_adamw(const AdamW& adamw, std::vector<Segment> segments,
                                       const device::View& parameters) {
  return std::make_unique<FusedAdamW>(adamw, std::move(segments), parameters);
}

}  // namespace zs::zero
