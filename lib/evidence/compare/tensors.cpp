// SPDX-License-Identifier: Apache-2.0
#include "compare/tensors.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/number.hpp"
#include "compare/elements.hpp"

namespace zs::compare {

std::string place_in(const tensorfile::Shape& shape, std::int64_t index) {
  tensorfile::Shape place(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; index /= shape[d]) place[d] = index % shape[d];
  return tensorfile::to_text(place);
}

namespace {

using tensorfile::Tensor;

Element element(const std::string& name, const Tensor& a, const Tensor& b, std::int64_t index) {
  const Spelt x = spelt(a, index), y = spelt(b, index);
  return {name,          index,         place_in(a.shape, index),     x.decimal,          y.decimal,
          x.hexadecimal, y.hexadecimal, std::fabs(x.value - y.value), ulp_at(a, b, index)};
}

Verdict outcome(const Elements& found) {
  return found.refused > 0      ? Verdict::different
         : found.not_finite > 0 ? Verdict::failed
         : found.differing > 0  ? Verdict::within
                                : Verdict::exact;
}

/// Adds two tensors of one type and count. `begin` is the index of their first element in the whole.
Elements add(Tensors& into, const std::string& name, const Tensor& a, const Tensor& b, const Tolerance& tolerance,
             std::int64_t begin = 0) {
  const Elements found = elements(a, b, tolerance);
  const auto at = [&](std::int64_t index) {
    Element one = element(name, a, b, index);
    if (begin > 0) one.index += begin, one.place = "[" + to_text(one.index) + "]";
    return one;
  };
  into.elements += found.compared;
  into.differing += found.differing;
  into.refused += found.refused;
  into.not_finite += found.not_finite;
  if (found.first >= 0 && !into.first) into.first = at(found.first);
  if (found.first_non_finite >= 0 && !into.non_finite) into.non_finite = at(found.first_non_finite);
  if (found.furthest >= 0 && (into.largest_at.empty() || found.largest.ulp > into.largest.ulp)) {
    const Element one = at(found.furthest);
    into.largest_at = one.tensor + " " + one.place;
  }
  into.largest.join(found.largest);
  return found;
}

Holdings holdings(const std::vector<Part>& parts) {
  Holdings held;
  for (const Part& part : parts) held.add(part.name, part.tensor.count());
  return held;
}

}  // namespace

Tensors parts(const std::vector<Part>& a, const std::vector<Part>& b, const std::string& name_a,
              const std::string& name_b, const Tolerance& tolerance) {
  Tensors made;
  Ledger ledger(holdings(a), holdings(b));
  std::set<std::string> differing;
  const auto end_of = [](const Part& part) { return part.begin + part.tensor.count(); };
  const auto cut = [](const Part& part, std::int64_t begin, std::int64_t end) {
    Tensor tensor = part.tensor;
    tensor.offset += (begin - part.begin) * tensor.strides[0];
    tensor.shape[0] = end - begin;
    return tensor;
  };
  const auto only = [&](const Part& part, std::int64_t begin, std::int64_t end, const std::string& where) {
    made.unlike.push_back(part.name + " from element " + to_text(begin) + " to " + to_text(end - 1) +
                          " is missing in " + where);
    ledger.at_least(Verdict::different);
    differing.insert(part.name);
  };
  std::size_t i = 0, k = 0;
  std::string last;
  std::int64_t done = 0;  // elements of the tensor `last` that both walks have passed
  while (i < a.size() || k < b.size()) {
    const bool left = i < a.size() && (k >= b.size() || a[i].name <= b[k].name);
    const std::string& name = left ? a[i].name : b[k].name;
    if (name != last) last = name, done = 0, ++made.tensors;
    const bool in_a = i < a.size() && a[i].name == name, in_b = k < b.size() && b[k].name == name;
    const std::int64_t begin_a = in_a ? std::max(a[i].begin, done) : INT64_MAX,
                       begin_b = in_b ? std::max(b[k].begin, done) : INT64_MAX;
    if (begin_a == begin_b) {
      const std::int64_t end = std::min(end_of(a[i]), end_of(b[k]));
      if (end > done) {
        const Elements found = add(made, name, cut(a[i], begin_a, end), cut(b[k], begin_b, end), tolerance, begin_a);
        if (found.differing > 0) differing.insert(name);
        ledger.compared(name, outcome(found), found.compared);
      }
      done = std::max(done, end);
    } else {
      const Part& part = begin_a < begin_b ? a[i] : b[k];
      const std::int64_t end = std::min(end_of(part), std::max(begin_a, begin_b));
      if (end > std::min(begin_a, begin_b))
        only(part, std::min(begin_a, begin_b), end, begin_a < begin_b ? name_b : name_a);
      done = std::max(done, end);
    }
    if (in_a && end_of(a[i]) <= done) ++i;
    if (in_b && end_of(b[k]) <= done) ++k;
  }
  made.tensors_differing = static_cast<std::int64_t>(differing.size());
  made.verdict = ledger.settle();
  return made;
}

}  // namespace zs::compare
