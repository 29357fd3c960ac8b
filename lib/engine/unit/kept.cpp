// SPDX-License-Identifier: Apache-2.0
#include "unit/kept.hpp"

#include <stdexcept>
#include <utility>

namespace zs::unit {
namespace {

thread_local Keeping* current = nullptr;
thread_local bool is_again = false;

}  // namespace

Keeping::Keeping(Kept& results, Way way) : outer_(std::exchange(current, this)), results_(results), way_(way) {}

Keeping::~Keeping() { current = outer_; }

Again::Again() { is_again = true; }
Again::~Again() { is_again = false; }
bool again() { return is_again; }

Results kept(const std::function<Results()>& compute) {
  if (!current) return compute();
  Kept& results = current->results_;
  if (current->way_ == Keeping::Way::put) {
    results.push_back(compute());
    return results.back();
  }
  if (results.empty()) throw std::logic_error("a second forward computes what the first one did not");
  Results first = std::move(results.front());
  results.pop_front();
  return first;
}

}  // namespace zs::unit
