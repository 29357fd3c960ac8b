// SPDX-License-Identifier: Apache-2.0
#include "probe/relation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/number.hpp"

namespace zs::probe {

Sketch range(const Sketch& sums, std::size_t number) {
  const auto begin = sums.begin() + static_cast<std::ptrdiff_t>(number * kSumsOfRange);
  return {begin, begin + kSumsOfRange};
}

double dot(const Sketch& a, const Sketch& b) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += a[i] * b[i];
  return sum;
}

double half_unit(const std::string& dtype) {
  if (dtype == "F8_E4M3") return 0x1p-4;
  return dtype == "BF16" ? 0x1p-8 : dtype == "F16" ? 0x1p-11 : dtype == "F64" ? 0x1p-53 : 0x1p-24;
}

double norm(const Sketch& a) { return std::sqrt(dot(a, a)); }

double distance(const Sketch& a, const Sketch& b) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  const double most = std::max(norm(a), norm(b));
  if (!std::isfinite(sum) || !std::isfinite(most)) return 2;
  return most > 0 ? std::sqrt(sum) / most : 0;
}

double residual(const std::vector<Sketch>& columns, const std::vector<double>& weights, const Sketch& target) {
  Sketch rest = target;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= weights[j] * columns[j][i];
  }
  const double whole = norm(target), left = norm(rest);
  if (!std::isfinite(left)) return 2;
  return whole > 0 ? left / whole : left > 0 ? 1 : 0;
}

Fit fit(const std::vector<Sketch>& columns, const Sketch& target) {
  // Modified Gram-Schmidt, twice over, on the columns scaled to 1.
  const std::size_t n = columns.size();
  std::vector<Sketch> q(n);
  std::vector<double> scale(n), along(n);
  std::vector<std::vector<double>> r(n, std::vector<double>(n, 0));
  Sketch rest = target;
  for (std::size_t j = 0; j < n; ++j) {
    scale[j] = norm(columns[j]);
    q[j] = columns[j];
    if (!(scale[j] > 0)) {
      q[j].assign(target.size(), 0);
      continue;
    }
    for (double& x : q[j]) x /= scale[j];
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t k = 0; k < j; ++k) {
        const double part = dot(q[k], q[j]);
        r[k][j] += part;
        for (std::size_t i = 0; i < q[j].size(); ++i) q[j][i] -= part * q[k][i];
      }
    }
    r[j][j] = norm(q[j]);
    if (r[j][j] < 1e-9) {  // depends on those before
      r[j][j] = 0;
      q[j].assign(target.size(), 0);
      continue;
    }
    for (double& x : q[j]) x /= r[j][j];
    along[j] = dot(q[j], rest);
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= along[j] * q[j][i];
  }
  Fit found{std::vector<double>(n, 0), 1};
  for (std::size_t j = n; j-- > 0;) {
    if (r[j][j] == 0) continue;
    double value = along[j];
    for (std::size_t k = j + 1; k < n; ++k) value -= r[j][k] * found.weights[k] * scale[k];
    found.weights[j] = value / r[j][j] / scale[j];
  }
  found.residual = residual(columns, found.weights, target);
  return found;
}

std::optional<Fit> whole_fit(const std::vector<Sketch>& columns, const Sketch& target, double unit, double most,
                             double near) {
  Fit found = fit(columns, target);
  if (!(found.residual <= most) || !(unit != 0)) return std::nullopt;
  for (double& weight : found.weights) {
    const double whole = std::round(weight / unit);
    if (!(std::fabs(weight / unit - whole) <= near)) return std::nullopt;
    weight = whole * unit;
  }
  found.residual = residual(columns, found.weights, target);
  if (!(found.residual <= most)) return std::nullopt;
  for (double& weight : found.weights) weight = std::round(weight / unit);
  return found;
}

std::string factor_text(double factor, const Constants& constants, double tolerance) {
  const auto is = [&](double value) { return std::fabs(factor - value) <= tolerance * std::fabs(value); };
  const auto number = [](double value) {
    const double inverse = 1 / value;
    if (std::fabs(value) < 1 && std::round(inverse) == inverse && std::fabs(inverse) < 1e9)
      return (inverse < 0 ? "-1/" : "1/") + to_text(static_cast<std::int64_t>(std::fabs(inverse)));
    if (std::round(value) == value && std::fabs(value) < 1e9) return to_text(static_cast<std::int64_t>(value));
    return to_rounded_text(value, 4);
  };
  std::string shown = "x " + to_rounded_text(factor, 4);
  const double nearest = std::fabs(factor) >= 1 ? std::round(factor) : 1 / std::round(1 / factor);
  if (std::isfinite(nearest) && nearest != 0 && is(nearest)) shown = "x " + number(nearest);
  for (const auto& [what, value] : constants) {
    if (value == 1 || value == 0) continue;
    if (is(value)) return shown + " (" + what + ")";
    if (is(1 / value)) return shown + " (1 / " + what + ")";
  }
  for (std::size_t i = 0; i < constants.size(); ++i) {
    for (std::size_t j = i + 1; j < constants.size(); ++j) {
      const auto& [a, x] = constants[i];
      const auto& [b, y] = constants[j];
      if (x == 1 || y == 1 || x == 0 || y == 0) continue;
      if (is(x * y)) return shown + " (" + a + " x " + b + ")";
      if (is(1 / (x * y))) return shown + " (1 / (" + a + " x " + b + "))";
    }
  }
  return shown;
}

double rounding(const std::string& dtype) {
  // Tolerances for tiny and large trainings: in float32 some hundred units of the last place, if a sum is long; 16-bit
  // types are rounded at each layer, and their sums are float32's.
  return (half_unit(dtype) > half_unit("F32") ? 16 : 512) * half_unit(dtype);
}

bool like_rounding(double distance, const std::string& dtype) {
  return distance > 0.3 * half_unit(dtype) && distance < 0.85 * half_unit(dtype);
}

double rounded_to(double value, const std::string& dtype) {
  const int digits = dtype == "F8_E4M3" ? 4 : dtype == "BF16" ? 8 : dtype == "F16" ? 11 : dtype == "F32" ? 24 : 53;
  if (value == 0 || !std::isfinite(value) || digits == 53) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  if (dtype == "F16") exponent = std::max(exponent, -13);
  return std::ldexp(std::nearbyint(std::ldexp(value, digits - exponent)), exponent - digits);
}

int rounded_elements(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr std::size_t kEnough = 4;
  if (a.size() != b.size()) return 0;
  std::size_t differ = 0, grid_a = 0, grid_b = 0, up = 0;
  double most = 0, sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i]) || a[i] == b[i]) continue;
    ++differ;
    grid_a += rounded_to(a[i], "BF16") == a[i], grid_b += rounded_to(b[i], "BF16") == b[i];
    up += std::fabs(b[i]) > std::fabs(a[i]);
    int exponent = 0;
    std::frexp(a[i], &exponent);
    const double units = std::fabs(a[i] - b[i]) / std::ldexp(1, exponent - 9);  // half units in the last place
    most = std::max(most, units), sum += units;
  }
  if (differ < kEnough) return 0;
  if (grid_a == differ || grid_b == differ) return 1;
  // Multiplied since, as by clipping: up and down, by half of a half unit on average.
  const double mean = sum / static_cast<double>(differ);
  return most <= 1.5 && mean > 0.25 && mean < 0.75 && up > 0 && up < differ ? 1 : -1;
}

const std::string& coarser(const std::string& a, const std::string& b) {
  if (a.empty()) return b;
  return b.empty() || rounding(a) >= rounding(b) ? a : b;
}

}  // namespace zs::probe
