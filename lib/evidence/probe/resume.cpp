// SPDX-License-Identifier: Apache-2.0
#include "probe/resume.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/number.hpp"

namespace zs::probe {
namespace {

/// Parameters alone, and each as if it had been a 16-bit weight in between.
bool rounded(const std::vector<Apart>& apart) {
  return std::ranges::all_of(
      apart, [](const Apart& one) { return one.parameter.starts_with("param/") && like_bfloat16(one.distance); });
}

}  // namespace

std::optional<Finding> resumed_apart(std::int64_t number, const Run& a, const Run& b) {
  for (const auto& [run, side] : {std::pair{&a, "A"}, {&b, "B"}}) {
    const auto start = run->starts.find(number - 1);
    const auto left = run->steps.find(number - 1);
    if (start == run->starts.end() || left == run->steps.end()) continue;
    std::vector<Apart> apart;
    std::vector<std::string> lost;
    std::size_t total = 0;
    for (const auto& [name, tensor] : left->second.tensors.all()) {
      if (!name.starts_with("param/") && !name.starts_with("state.")) continue;
      ++total;
      const Tensor* const now = start->second.find(name);
      if (!now)
        lost.push_back(name);
      else if (!now->same(tensor) && now->sketch.size() == tensor.sketch.size())
        apart.push_back({name, &tensor.sketch, &now->sketch, distance(tensor.sketch, now->sketch), 0});
    }
    const auto told = run->counted.find(number - 1);
    const bool miscounts = told != run->counted.end() && told->second != number - 1;
    if (apart.empty() && lost.empty() && !miscounts) continue;
    Finding finding;
    if (!apart.empty()) finding = made(number, "resume", apart, total);
    finding.step = number, finding.place = "resume", finding.total = total;
    if (apart.empty()) finding.parameter = "the step counter", finding.distance = 1;
    if (apart.empty() && !lost.empty()) finding.parameter = lost.front(), finding.tensors = lost;
    std::vector<std::string> what;
    if (!lost.empty()) what.push_back(std::to_string(lost.size()) + " tensors of the optimizer's state are gone");
    if (!apart.empty())
      what.push_back(
          std::to_string(apart.size()) + " tensors have other values" +
          (rounded(apart) ? ", as far apart as rounding to bfloat16 leaves: were the float32 masters kept?" : ""));
    if (miscounts) what.push_back("its counter says " + to_text(told->second) + " steps after " + to_text(number - 1));
    finding.relation = std::string(side) + " did not resume what it left: " + fmt::format("{}", fmt::join(what, ", "));
    return finding;
  }
  return std::nullopt;
}

}  // namespace zs::probe
