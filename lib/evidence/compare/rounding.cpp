// SPDX-License-Identifier: Apache-2.0
#include "compare/rounding.hpp"

#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "compare/elements.hpp"

namespace zs::compare {
namespace {

double unit(const std::string& dtype) {
  return dtype == "BF16" ? 0x1p-8 : dtype == "F16" ? 0x1p-11 : dtype == "F64" ? 0x1p-53 : 0x1p-24;
}

/// The bound of a tensor's type, or of the type that two programs compute in.
double bound_of(const Probed& tensor, const std::string& computed) {
  return std::max(Rounding::bound(tensor.dtype), computed.empty() ? 0 : 16 * unit(computed));
}

/// All elements of a tensor, from its parts.
std::vector<double> joined(const Values& parts, std::int64_t of) {
  std::vector<double> all(static_cast<std::size_t>(of));
  for (const Part& part : parts) {
    const std::vector<double> values = reals(part.tensor);
    std::copy(values.begin(), values.end(), all.begin() + part.begin);
  }
  return all;
}

std::string in_words(const char* what, double a, double b) {
  return std::string(what) + to_rounded_text(a, 6) + " and " + to_rounded_text(b, 6);
}

double larger_norm(const Probed& a, const Probed& b) { return std::max(a.norm(), b.norm()); }

/// By norms alone: beyond, or unknown.
Judged by_norms(const Probed& a, const Probed& b, double bound) {
  const double apart = std::fabs(a.norm() - b.norm());
  if (!(apart <= bound * larger_norm(a, b))) return {Apart::beyond, in_words("the norms are ", a.norm(), b.norm())};
  return {Apart::unknown, "the norms agree, and no values were kept"};
}

/// By the norm of the difference over the elements that count.
Judged by_values(const Probed& a, const Probed& b, const Values& values_a, const Values& values_b,
                 const std::vector<bool>& left_out, double bound) {
  const std::vector<double> x = joined(values_a, a.of), y = joined(values_b, b.of);
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (left_out.empty() || !left_out[i]) squares += (x[i] - y[i]) * (x[i] - y[i]);
  }
  const double apart = std::sqrt(squares);
  if (apart <= bound * larger_norm(a, b)) return {Apart::rounding};
  return {Apart::beyond, in_words("the norms of the difference and of the whole are ", apart, larger_norm(a, b))};
}

}  // namespace

double Rounding::bound(const std::string& dtype) { return 256 * unit(dtype); }

Judged Rounding::loss(double a, double b) const {
  const double most = std::max(bound("F32"), computed_.empty() ? 0 : unit(computed_));
  if (std::fabs(a - b) <= most * std::max(std::fabs(a), std::fabs(b))) return {Apart::rounding};
  return {Apart::beyond, in_words("the losses are ", a, b)};
}

Judged Rounding::gradient(const Probed& a, const Probed& b, const Values& values_a, const Values& values_b) const {
  const double most = bound_of(a, computed_);
  const Judged norms = by_norms(a, b, most);
  if (norms.apart == Apart::beyond || values_a.empty() || values_b.empty()) return norms;
  return by_values(a, b, values_a, values_b, {}, most);
}

Judged Rounding::parameter(const std::string& name, const Probed& a, const Probed& b, const Values& values_a,
                           const Values& values_b, const Values& gradient) {
  std::vector<bool>& noise = noise_[name];
  noise.resize(static_cast<std::size_t>(a.of));
  if (!gradient.empty()) {
    const std::vector<double> values = joined(gradient, a.of);
    double largest = 0;
    for (const double value : values) largest = std::max(largest, std::fabs(value));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::fabs(values[i]) <= bound_of(a, computed_) * largest) noise[i] = true;
    }
  }
  const double most = bound_of(a, computed_);
  const Judged norms = by_norms(a, b, most);
  if (values_a.empty() || values_b.empty()) return norms;
  return by_values(a, b, values_a, values_b, noise, most);
}

}  // namespace zs::compare
