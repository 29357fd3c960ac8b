// SPDX-License-Identifier: Apache-2.0
#include "zero/optimizer.hpp"

#include <algorithm>

namespace zs::zero {
namespace {

class FusedAdamW final : public Optimizer {
 public:
  FusedAdamW(const AdamW& adamw, std::vector<Segment> segments, float* parameters, std::int64_t n)
      : adamw_(adamw),
        segments_(std::move(segments)),
        parameters_(parameters),
        exp_avg_(at::zeros({n})),
        exp_avg_sq_(at::zeros({n})) {}

  void update(const Update& update, const float* gradient_sum) override {
    auto* const exp_avg = exp_avg_.data_ptr<float>();
    auto* const exp_avg_sq = exp_avg_sq_.data_ptr<float>();
    for (const Segment& s : segments_) {
      adamw_update(factors(adamw_, update.learning_rate, update.number, s.decay), parameters_ + s.begin,
                   exp_avg + s.begin, exp_avg_sq + s.begin, gradient_sum + s.begin, update.scale, update.clip,
                   s.end - s.begin);
    }
  }
  at::Tensor exp_avg() override { return exp_avg_; }
  at::Tensor exp_avg_sq() override { return exp_avg_sq_; }
  void restore(const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq, std::int64_t) override {
    exp_avg_.copy_(exp_avg);
    exp_avg_sq_.copy_(exp_avg_sq);
  }

 private:
  AdamW adamw_;
  std::vector<Segment> segments_;
  float* parameters_;
  at::Tensor exp_avg_, exp_avg_sq_;
};

}  // namespace

std::vector<Segment> segments(const unit::Unit& unit, comm::Slice owned, bool decay_all) {
  std::vector<Segment> all;
  for (const unit::Parameter& parameter : unit.parameters()) {
    const std::int64_t begin = std::max(parameter.offset, owned.begin),
                       end = std::min(parameter.offset + parameter.numel(), owned.end);
    if (begin < end) all.push_back({begin - owned.begin, end - owned.begin, decay_all || parameter.decay});
  }
  return all;
}

std::unique_ptr<Optimizer> fused_adamw(const AdamW& adamw, std::vector<Segment> segments, float* parameters,
                                       std::int64_t n) {
  return std::make_unique<FusedAdamW>(adamw, std::move(segments), parameters, n);
}

}  // namespace zs::zero
