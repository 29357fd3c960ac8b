// SPDX-License-Identifier: Apache-2.0
#include "probe/negligible.hpp"

#include <algorithm>
#include <cmath>

#include "base/number.hpp"

namespace zs::probe {
namespace {

constexpr double kOfNorm = 1 / 8.;  // upper bound of a gradient that is only rounding, relative to the type's rounding

double size(const Tensor& tensor) {
  return tensor.total > 0 ? norm(tensor.sketch) / std::sqrt(static_cast<double>(tensor.total)) : 0;
}

/// The largest gradient an element has, on average, in a parameter's module.
double usual(const Tensors& tensors, const std::string& parameter) {
  const std::string module = "grad/" + parameter.substr(0, parameter.rfind('.') + 1);
  double most = 0;
  for (const auto& [name, tensor] : tensors.all()) {
    if (name.starts_with(module) && name.find('.', module.size()) == std::string::npos)
      most = std::max(most, size(tensor));
  }
  return most;
}

void clear(const Negligible::Ranges& ranges, Sketch& a, Sketch& b) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (!ranges[i]) continue;
    std::fill_n(a.begin() + static_cast<std::ptrdiff_t>(i * kSumsOfRange), kSumsOfRange, 0);
    std::fill_n(b.begin() + static_cast<std::ptrdiff_t>(i * kSumsOfRange), kSumsOfRange, 0);
  }
}

std::string called(const std::string& place) {
  if (place == "grad") return "gradients";
  if (place == "local") return "gradients of micro-batches";
  if (place == "update") return "updates";
  if (place == "model") return "copies";
  return "optimizer state " + place.substr(place.find('.') + 1);
}

}  // namespace

Negligible::Ranges Negligible::of(const std::string& parameter, const Side& a, const Side& b, double unit) {
  const Tensor *const left = a.step.tensors.find("grad/" + parameter), *const right =
                                                                           b.step.tensors.find("grad/" + parameter);
  if (!left || !right || left->sketch.size() != right->sketch.size() || left->sketch.size() % kSumsOfRange != 0)
    return {};
  const std::size_t count = left->sketch.size() / kSumsOfRange;
  const double elements = std::sqrt(static_cast<double>(left->total) / static_cast<double>(count));
  const auto small = [&](const Sketch& part, double most) { return norm(part) / elements <= kOfNorm * unit * most; };
  const double most_a = usual(a.step.tensors, parameter), most_b = usual(b.step.tensors, parameter);
  Ranges ranges(count, false);
  for (std::size_t i = 0; i < count; ++i) {
    const Sketch x = range(left->sketch, i), y = range(right->sketch, i);
    ranges[i] = small(x, most_a) && small(y, most_b) && distance(x, y) > unit;
  }
  return std::find(ranges.begin(), ranges.end(), true) == ranges.end() ? Ranges() : ranges;
}

void Negligible::add(const std::string& parameter, const Ranges& ranges) {
  now_[parameter] = ranges;
  Ranges& ever = ever_[parameter];
  ever.resize(ranges.size(), false);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (!ranges[i]) continue;
    ever[i] = true;
    if (i > 0) ever[i - 1] = true;
    if (i + 1 < ranges.size()) ever[i + 1] = true;
  }
}

bool Negligible::judged(const std::string& place, const std::string& parameter, Sketch& a, Sketch& b) {
  const bool gradient = place == "grad" || place == "local";
  const auto& known = gradient ? now_ : ever_;
  const auto found = known.find(parameter);
  if (found == known.end() || found->second.size() * kSumsOfRange != a.size() || a.size() != b.size()) return true;
  Count& count = counts_[place];
  count.parameters.insert(parameter);
  count.known += static_cast<std::int64_t>(found->second.size());
  count.ranges += std::count(found->second.begin(), found->second.end(), true);
  clear(found->second, a, b);
  return std::find(found->second.begin(), found->second.end(), false) != found->second.end();
}

void Negligible::leave_out(const std::string& parameter, Sketch& a, Sketch& b) const {
  const auto found = ever_.find(parameter);
  if (found != ever_.end() && found->second.size() * kSumsOfRange == a.size() && a.size() == b.size())
    clear(found->second, a, b);
}

std::string Negligible::text() const {
  std::string text;
  std::set<std::string> parameters;
  for (const auto& [place, count] : counts_) {
    if (count.ranges == 0) continue;
    text += (text.empty() ? "" : ", ") + to_text(count.ranges) + " of " + to_text(count.known) + " ranges of " +
            called(place);
    parameters.insert(count.parameters.begin(), count.parameters.end());
  }
  if (text.empty()) return text;
  std::string names;
  std::size_t told = 0;
  for (const std::string& name : parameters) {
    if (told++ < 3) names += (names.empty() ? "" : ", ") + name;
  }
  if (told > 3) names += " and " + to_text(static_cast<std::int64_t>(told - 3)) + " more";
  return text + ", over all steps: the gradient there is rounding alone (" + names + ")";
}

}  // namespace zs::probe
