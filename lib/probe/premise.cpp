// SPDX-License-Identifier: Apache-2.0
#include "probe/premise.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/number.hpp"

namespace zs::probe {
namespace {

std::set<std::string> samples_of(const Step& step) {
  std::set<std::string> found;
  for (const auto& [rank, batches] : step.batch) {
    for (const auto& batch : batches) found.insert(batch.begin(), batch.end());
  }
  return found;
}

std::set<std::string> less(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::set<std::string> left;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(left, left.end()));
  return left;
}

std::string count(std::size_t number) { return to_text(static_cast<std::int64_t>(number)); }

Finding said(std::int64_t step, const std::string& place, const std::string& parameter, const std::string& relation) {
  Finding finding;
  finding.step = step;
  finding.place = place;
  finding.parameter = parameter;
  finding.relation = relation;
  finding.distance = 1;
  finding.of = 1;
  return finding;
}

std::string shown(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ", ") + to_text(value);
  return values.size() == 1 ? text : "(" + text + ")";
}

bool near(double a, double b) { return std::fabs(a - b) <= 1e-6 * std::max(std::fabs(a), std::fabs(b)); }

/// Each rate once.
std::vector<double> distinct(const std::vector<double>& rates) {
  std::vector<double> kept;
  for (const double rate : rates) {
    if (std::find(kept.begin(), kept.end(), rate) == kept.end()) kept.push_back(rate);
  }
  return kept;
}

std::optional<Finding> rates_apart(std::int64_t step, const Side& a, const Side& b) {
  auto left = a.step.rates, right = b.step.rates;
  if (left.size() != right.size())  // group by group in one, part by part in the other
    left = distinct(left), right = distinct(right);
  if (left.size() != right.size()) return std::nullopt;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (near(left[i], right[i])) continue;
    std::string text = "the rate of group " + count(i) + " is " + to_text(right[i]) + " for " + to_text(left[i]);
    if (left[i] != 0 && right[i] != 0) text += ", " + factor_text(right[i] / left[i], constants(a, b), 1e-4);
    for (std::size_t j = 0; j < left.size(); ++j) {
      if (j != i && left[j] == right[i]) text += " (that of group " + count(j) + ")";
    }
    Finding finding = said(step, "rate", "", text);
    finding.of = left.size();
    finding.distance = std::fabs(left[i] - right[i]) / std::max(std::fabs(left[i]), std::fabs(right[i]));
    finding.bound = 1e-6;
    return finding;
  }
  return std::nullopt;
}

/// The one that stands for `name`, where a run says that two are one.
std::string tied_to(const Run& run, const std::string& name) {
  for (const auto& [first, others] : run.ties) {
    if (std::find(others.begin(), others.end(), name) != others.end()) return first;
  }
  return "";
}

}  // namespace

Samples::Samples(const Run& a, const Run& b) : a_(a), b_(b) {
  std::set<std::string> all;
  for (const auto& [number, step] : a.steps) all.merge(samples_of(step));
  for (const auto& [number, step] : b.steps) {
    const auto its = samples_of(step);
    comparable_ |= std::any_of(its.begin(), its.end(), [&](const std::string& s) { return all.contains(s); });
  }
}

std::optional<Finding> Samples::apart(std::int64_t number) const {
  if (!comparable_) return std::nullopt;
  const auto left = samples_of(a_.steps.at(number)), right = samples_of(b_.steps.at(number));
  const auto missing = less(left, right), other = less(right, left);
  if (left.empty() || right.empty() || (missing.empty() && other.empty())) return std::nullopt;
  std::string text = "batch: ";
  if (!missing.empty()) text += count(missing.size()) + " of " + count(left.size()) + " samples are missing";
  if (!other.empty()) {
    text += (missing.empty() ? "" : ", ") + count(other.size()) + " samples are others";
    for (const auto& [step, held] : a_.steps) {
      if (step != number && less(other, samples_of(held)).empty()) {
        text += ": those of step " + to_text(step);
        break;
      }
    }
  } else if (right.size() < left.size()) {
    text += ": B has " + count(right.size()) + " samples";
  }
  return said(number, "batch", "", text);
}

std::optional<Finding> options_apart(std::int64_t step, const Side& a, const Side& b) {
  if (a.step.rates.empty() || b.step.rates.empty()) return std::nullopt;
  if (auto rate = rates_apart(step, a, b)) return rate;
  if (a.step.groups.size() != b.step.groups.size()) return std::nullopt;
  for (std::size_t i = 0; i < a.step.groups.size(); ++i) {
    for (const auto& [key, value] : a.step.groups[i]) {
      const auto other = b.step.groups[i].find(key);
      if (key == "lr" || other == b.step.groups[i].end() || value.size() != other->second.size() ||
          std::equal(value.begin(), value.end(), other->second.begin(), near))
        continue;
      return said(step, "rate", "",
                  key + " of group " + count(i) + " is " + shown(other->second) + " for " + shown(value));
    }
  }
  return std::nullopt;
}

std::optional<Finding> parameters_apart(std::int64_t step, const Side& a, const Side& b) {
  struct One {
    const Side *has, *lacks;
    const char *name, *other;
  };
  for (const One& one : {One{&a, &b, "A", "B"}, One{&b, &a, "B", "A"}}) {
    for (const auto& [name, tensor] : one.has->step.tensors.all()) {
      const bool gradient = name.starts_with("grad/");
      if ((!gradient && !name.starts_with("param/")) || one.lacks->step.tensors.find(name)) continue;
      const std::string parameter = name.substr(name.find('/') + 1);
      const std::string here = one.name, there = one.other;
      if (const std::string first = tied_to(one.lacks->run, parameter); !first.empty())
        return said(step, "parameter", parameter,
                    parameter + " is tied to " + first + " in " + there + ", a parameter of its own in " + here);
      const bool frozen = one.lacks->run.frozen.contains(parameter), also = one.has->run.frozen.contains(parameter);
      if (frozen && also) continue;
      if (frozen)
        return said(step, "parameter", parameter, parameter + " is frozen in " + there + ", trained in " + here);
      if (!gradient && !also && one.lacks->run.unseen.empty())
        return said(step, "parameter", parameter, parameter + " is in no group of " + there + "'s optimizer");
    }
  }
  return std::nullopt;
}

std::optional<Finding> copies_apart(std::int64_t step, const Side& b, const char* who) {
  std::vector<std::string> names;
  std::set<std::string> how;
  double by = 0, allowed = 0;
  std::size_t of = 0;
  for (const auto& [name, copy] : b.step.tensors.all()) {
    if (!name.starts_with("model/")) continue;
    const std::string parameter = name.substr(6);
    const Tensor* const master = b.step.tensors.find("param/" + parameter);
    if (!master || master->sketch.size() != copy.sketch.size() || !copy.whole() || !master->whole()) continue;
    ++of;
    // A number of 16 bits is half a unit in the last place from what it was made of.
    const double most = copy.dtype == master->dtype ? 1e-9 : rounding(coarser(copy.dtype, master->dtype)) / 8;
    const double apart = distance(copy.sketch, master->sketch);
    if (apart <= most) continue;
    if (names.empty()) by = apart, allowed = most;
    names.push_back(parameter);
    const Tensor* const old = b.previous ? b.previous->tensors.find("param/" + parameter) : nullptr;
    how.insert(old && old->sketch.size() == copy.sketch.size() && distance(copy.sketch, old->sketch) <= most
                   ? ": it is stale, that of step " + to_text(step - 1)
                   : "");
  }
  if (names.empty()) return std::nullopt;
  Finding finding = said(step, "copy", names.front(),
                         std::string(who) + "'s forward computes with what is not what the update made" +
                             (how.size() == 1 ? *how.begin() : ""));
  finding.tensors = names;
  finding.of = of;
  finding.distance = by;
  finding.bound = allowed;
  return finding;
}

}  // namespace zs::probe
