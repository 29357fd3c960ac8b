// SPDX-License-Identifier: Apache-2.0
#include "probe/diagnosis.hpp"

#include "base/number.hpp"
#include "probe/comparison.hpp"

namespace zs::probe {

std::string thing(std::int64_t step, const std::string& name) { return "step " + to_text(step) + ": " + name; }
std::string start_thing(std::int64_t step, const std::string& name) { return "start " + to_text(step) + ": " + name; }

Diagnosis diagnose(const Run& a, const Run& b, const Run* floor) { return Comparison(a, b, floor).next(); }

Diagnosing::Diagnosing(const Run& a, const Run& b, const Run* floor)
    : comparison_(std::make_unique<Comparison>(a, b, floor)) {}
Diagnosing::~Diagnosing() = default;
Diagnosis Diagnosing::next() { return comparison_->next(); }
std::int64_t Diagnosing::last() const { return comparison_->last(); }

std::string replica_text(const probefile::Replica& apart) {
  return "rank " + std::to_string(apart.second) + " holds other values than rank " + std::to_string(apart.first);
}

}  // namespace zs::probe
