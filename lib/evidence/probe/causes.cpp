// SPDX-License-Identifier: Apache-2.0
#include "probe/causes.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "probe/matching.hpp"

namespace zs::probe {
namespace {

/// Whether the micro-batches' own gradients have the factor. False where they cannot be matched.
bool before_reduction(const std::vector<std::string>& parameters, double factor, const Side& a, const Side& b) {
  const auto pairs = matched(a.step, b.step);
  bool any = false;
  for (const auto& [left, right] : pairs) {
    for (const std::string& name : parameters) {
      const Tensor *const x = left->tensors.find(name), *const y = right->tensors.find(name);
      if (!x || !y || x->sketch.size() != y->sketch.size() || norm(x->sketch) == 0) continue;
      const Fit one = fit({x->sketch}, y->sketch);
      if (!(std::fabs(one.weights[0] / factor - 1) < 0.02)) return false;
      any = true;
    }
  }
  return any;
}

}  // namespace

std::int64_t size_of(const Run& run, const char* axis, const char* other) {
  for (const char* const name : {axis, other}) {
    if (const auto known = run.axes.find(name); known != run.axes.end()) return known->second;
  }
  return 1;
}

std::string family(const Run& run, const Step& step, const std::string& place, const std::string& parameter) {
  std::set<int> shares;
  for (const auto& [key, local] : step.locals) {
    if (local.tensors.find(parameter)) shares.insert(key.first);
  }
  std::string text = std::to_string(shares.size()) + " shares";
  const Tensor* const tensor = step.tensors.find(place + "/" + parameter);
  if (!tensor) return text;
  if (size_of(run, "pipeline", "pp") > 1) {
    std::set<int> held;
    for (const Tensor::Piece& piece : tensor->pieces) held.insert(piece.rank);
    if (!held.empty()) text += ", held from rank " + std::to_string(*held.begin());
  }
  if (size_of(run, "tensor", "tp") > 1) text += tensor->pieces.size() > 1 ? ", cut" : ", whole";
  return text;
}

void Causes::add(const std::string& name, double value) {
  if (!(value > 1)) return;
  const auto same = std::ranges::find(known_, value, [](const auto& known) { return known.second; });
  if (same == known_.end())
    known_.emplace_back(name, value);
  else if ((" " + same->first + " ").find(" " + name + " ") == std::string::npos)
    same->first += " or " + name;
}

void Causes::ranks(const Run& run, const Step& step, bool reduced) {
  std::set<int> shares;
  for (const auto& [key, local] : step.locals) shares.insert(key.first);
  for (const auto& [name, size] : run.axes) {
    const bool within =
        name == "tensor" || name == "tp" || name == "context" || name == "cp";  // a micro-batch's backward
    if (reduced || within) add(name + " ranks", static_cast<double>(size));
  }
  if (!reduced) return;
  const auto is_axis = [&](double size) {
    return std::ranges::any_of(run.axes, [&](const auto& axis) { return static_cast<double>(axis.second) == size; });
  };
  if (run.ranks > 1 && !is_axis(run.ranks)) add("ranks", run.ranks);
  const double data = static_cast<double>(shares.size());
  if (data != run.ranks && !is_axis(data)) add("data-parallel ranks", data);
}

void Causes::micro_batches(const Run& run, const Step& step) {
  double count = 0;
  for (const auto& [key, local] : step.locals) count = std::max<double>(count, key.second + 1);
  const auto told = step.scalars.find("accumulation");
  if (told != step.scalars.end()) add("accumulation", told->second);
  const bool known = std::ranges::any_of(known_, [&](const auto& one) {
    return one.second == count && one.first.find("accumulation") != std::string::npos;
  });
  if (!known) add(run.ranks > 1 ? "accumulation" : "micro-batches", count);
}

void Causes::scale(const Step& step) {
  if (const auto scale = step.scalars.find("loss_scale"); scale != step.scalars.end()) add("loss scale", scale->second);
}

void Causes::next_scale(const Step& step) {
  const auto scale = step.scalars.find("loss_scale"), after = step.scalars.find("loss_scale_after");
  if (scale != step.scalars.end() && after != step.scalars.end() && scale->second > 0)
    add("loss scale after this step over that before", after->second / scale->second);
}

double Causes::clipping(const Step& step) {
  const auto bound = step.scalars.find("clip"), told = step.scalars.find("norm");
  if (bound == step.scalars.end() || told == step.scalars.end() || !(bound->second > 0)) return 1;
  const double over = told->second / bound->second;
  add("norm over clip bound", over);
  return std::max(1.0, over);
}

Constants causes_of(const std::vector<std::string>& parameters, double factor, const std::string& place, const Side& a,
                    const Side& b) {
  if (place != "grad" && place != "local" && place != "direction") return {};
  const double moved = std::fabs(factor - 1) / std::max(1.0, std::fabs(factor));  // by distance()
  std::set<std::string> families;
  for (const std::string& name : parameters) families.insert(family(b.run, b.step, place, name));
  for (const auto& [name, mine] : b.step.tensors.all()) {
    if (!name.starts_with(place + "/")) continue;
    const std::string parameter = name.substr(place.size() + 1);
    const Tensor* const other = a.step.tensors.find(name);
    if (!other || other->sketch.size() != mine.sketch.size() ||
        std::ranges::find(parameters, parameter) != parameters.end() ||
        !families.contains(family(b.run, b.step, place, parameter)))
      continue;
    // The cause would have moved this one, and it stands. A gradient that is rounding alone says nothing.
    if (mine.squares > 0 && other->squares > 0 && distance(other->sketch, mine.sketch) < moved / 4) return {};
  }
  Causes found;
  for (const Side* side : {&b, &a}) found.next_scale(side->step);
  const bool reduced = !before_reduction(parameters, factor, a, b);
  for (const Side* side : {&b, &a}) {
    found.ranks(side->run, side->step, reduced);
    found.micro_batches(side->run, side->step);
    found.scale(side->step);
  }
  double over[2] = {1, 1};
  for (const Side* side : {&a, &b}) over[side == &b] = found.clipping(side->step);
  if (std::min(over[0], over[1]) <= 1) return found.all();  // one side clips, at most
  if (over[0] > over[1]) found.add("clipping: the norm of A over that of B", over[0] / over[1]);
  if (over[1] > over[0]) found.add("clipping: the norm of B over that of A", over[1] / over[0]);
  return found.all();
}

}  // namespace zs::probe
