// SPDX-License-Identifier: Apache-2.0
// The ledger's comparison of the fields of a tensor, and of a step's fields that hold tensors.
#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "probe/matching.hpp"
#include "probe/scene.hpp"
#include "tensorfile/tensor.hpp"

namespace zs::probe {
namespace {

using compare::Verdict;
using Outcome = Account::Outcome;

/// Whether each rank holds the same part, of the same bits.
bool lie_alike(const Tensor& x, const Tensor& y) {
  return std::equal(
      x.pieces.begin(), x.pieces.end(), y.pieces.begin(), y.pieces.end(),
      [](const auto& p, const auto& q) { return p.key == q.key && p.rank == q.rank && p.digest == q.digest; });
}

/// Whether equal values have sums of equal bits: both were added up in one order.
bool sum_alike(const Tensor& x, const Tensor& y) { return x.shortened == y.shortened && lie_alike(x, y); }

std::map<std::string, const Tensor*> listed(const Tensors& tensors, const std::string& before = "") {
  std::map<std::string, const Tensor*> found;
  for (const auto& [name, tensor] : tensors.all()) found.emplace(before + name, &tensor);
  return found;
}

}  // namespace

// ---- the fields of a tensor
/// Tensors are paired by name.
Account::Outcome Account::Scene::field(probefile::rule::Row, const Tensor&, const Tensor&, const std::string&) const {
  return {};
}
/// In one layout each rank holds the same part. If the whole has the same bits, the part has them, too.
Account::Outcome Account::Scene::field(probefile::rule::Part, const Tensor& x, const Tensor& y,
                                       const std::string& name) const {
  if (!alike || x.digest != y.digest) return {};
  return unjudged(lie_alike(x, y), name + " lies otherwise on the ranks");
}
Account::Outcome Account::Scene::field(probefile::rule::Form, const Tensor& x, const Tensor& y,
                                       const std::string& name) const {
  if (x.dtype == y.dtype && x.total == y.total && x.shape == y.shape) {
    if (x.held == y.held) return {};
    return {Verdict::failed,
            name + " is not whole: A has " + to_text(x.held) + " of its elements, B " + to_text(y.held)};
  }
  const bool state = !alike && !name.starts_with("grad/") && !name.starts_with("param/") && x.shape == y.shape;
  if (state && found.judged.contains(prefix + name)) return {Verdict::rounding, ""};
  const auto form = [](const Tensor& one) { return one.dtype + " " + tensorfile::to_text(one.shape); };
  std::string text = name + " is " + form(y) + " instead of " + form(x);
  if (x.shape == y.shape && x.dtype != y.dtype && name.starts_with("param/"))
    text += ": only one side has float32 masters, the other rounds each update";
  if (form(x) == form(y)) text = name + " has another number of elements";
  return {state ? Verdict::inconclusive : Verdict::different, text};
}

Account::Outcome Account::Scene::field(probefile::rule::Bits, const Tensor& x, const Tensor& y,
                                       const std::string& name) const {
  if (x.digest == y.digest) return {};
  if (!tolerance.exact()) return {Verdict::within, ""};  // which the elements decide
  if (found.judged.contains(prefix + name)) return {Verdict::rounding, ""};
  if (found.first) return {Verdict::inconclusive, ""};  // it follows the first difference, which is told
  return {Verdict::inconclusive, name + " differs, and nothing recorded shows by how much it may"};
}

Account::Outcome Account::Scene::field(probefile::rule::Squares, const Tensor& x, const Tensor& y,
                                       const std::string& name) const {
  if (!std::isfinite(x.squares) && !std::isfinite(y.squares))
    return {Verdict::failed, name + " is not finite on either side"};
  if (std::isfinite(x.squares) != std::isfinite(y.squares))
    return {Verdict::different, name + " is finite on one side"};
  const bool same = x.digest == y.digest && x.dtype == y.dtype;
  const auto bound = found.judged.find(prefix + name);
  if (same && alike && sum_alike(x, y))
    return {same_bits(x.squares, y.squares) ? Verdict::exact : Verdict::failed,
            name + " has another norm than its values tell"};
  const double most = same ? 1e-6 : bound == found.judged.end() ? 1 : 4 * bound->second + 1e-6;
  if (x.summands || y.summands || same_bits(x.squares, y.squares) ||
      close_to(std::sqrt(x.squares), std::sqrt(y.squares), most))
    return {};
  return {same ? Verdict::failed : Verdict::different, name + " has another norm than its values tell"};
}

Account::Outcome Account::Scene::field(probefile::rule::Orders, const Tensor& x, const Tensor& y,
                                       const std::string& name) const {
  const bool both = x.set != 0 && y.set != 0 && x.digest == y.digest;
  if (!both || (x.set == y.set && x.rows == y.rows && x.cols == y.cols)) return {};
  return {Verdict::failed, name + ": equal bits have other digests of their set, rows or columns"};
}

Account::Outcome Account::Scene::field(probefile::rule::Sums, const Tensor& x, const Tensor& y,
                                       const std::string& name) const {
  if (x.digest != y.digest || x.dtype != y.dtype || x.sketch.size() != y.sketch.size()) return {};
  for (std::size_t i = 0; i < x.sketch.size(); ++i) {
    const double most = alike && sum_alike(x, y) ? 0 : 1e-9 * std::sqrt(x.squares * static_cast<double>(x.total));
    if (!same_bits(x.sketch[i], y.sketch[i]) && !(std::fabs(x.sketch[i] - y.sketch[i]) <= most) &&
        std::isfinite(x.squares))
      return {Verdict::failed, name + " has equal values and another sketch"};
  }
  return {};
}

/// Elements are equal if the bits of the tensor are; else they may be as far apart as the whole tensor may be.
Account::Outcome Account::Scene::field(probefile::rule::Sample, const Tensor& x, const Tensor& y,
                                       const std::string& name) const {
  if (x.elements.size() != y.elements.size()) return unjudged(!alike, name + " has elements on one side alone");
  const bool same = x.digest == y.digest && x.dtype == y.dtype;
  const auto bound = found.judged.find(prefix + name);
  const double size = std::sqrt(std::max(x.squares, y.squares));
  const double most = same ? 0 : bound == found.judged.end() ? 2 * size : (4 * bound->second + 1e-6) * size;
  for (std::size_t i = 0; i < x.elements.size(); ++i) {
    const double p = x.elements[i], q = y.elements[i];
    if (!same_bits(p, q) && std::isfinite(x.squares) && !(std::fabs(p - q) <= most))
      return {same ? Verdict::failed : Verdict::different, name + " has other elements than its values tell"};
  }
  return {};
}

Account::Outcome Account::Scene::tensor(const std::string& name, const Tensor& x, const Tensor& y) const {
  Outcome worst;
  probefile::each(probefile::kTensor, [&](const auto& row) {
    Outcome one = field(row.rule, x, y, name);
    if (one.verdict > worst.verdict) worst = std::move(one);
  });
  if (x.digest != y.digest) to.tensors_differ_ = true;
  return worst;
}

// ---- the fields of a step that hold tensors
void Account::Scene::enter(probefile::rule::Tensors) {
  tensors(listed(left->tensors), listed(right->tensors), [&](const std::string& name) -> const char* {
    if (layout() == kPartial) return kPartial;
    if (frozen_elsewhere(name)) return kLayout;
    if (alike) return nullptr;
    if (name.starts_with("grad/")) {
      const std::string direction = "direction/" + name.substr(5);
      return left->tensors.find(direction) || right->tensors.find(direction) ? kLayout : nullptr;
    }
    return name.starts_with("param/") ? nullptr : kLayout;
  });
}

void Account::Scene::enter(probefile::rule::Contributions) {
  std::map<std::string, const Tensor*> mine, theirs;
  std::set<const Contribution*> paired;
  const auto list = [](std::map<std::string, const Tensor*>& into, const Contribution& one, int by, int micro) {
    into.merge(listed(one.tensors, "micro-batch " + std::to_string(by) + "/" + std::to_string(micro) + ": "));
  };
  auto pairs = matched(*left, *right);
  if (pairs.size() != left->locals.size() && !alike) pairs = along(*left, *right);
  for (const auto& [x, y] : pairs) {
    list(mine, *x, x->by, x->micro), list(theirs, *y, x->by, x->micro);
    paired.insert(x), paired.insert(y);
  }
  for (const auto& [key, one] : left->locals) {
    if (!paired.contains(&one)) list(mine, one, key.first, key.second);
  }
  for (const auto& [key, one] : right->locals) {
    if (!paired.contains(&one)) list(theirs, one, key.first + (1 << 20), key.second);
  }
  each(
      mine, theirs,
      [&](const std::string& name, const Tensor* x, const Tensor* y) {
        Outcome found_here = tensor(name, *x, *y);  // of another layout: divided by another number
        if (micro_batch() && found_here.verdict != Verdict::failed && found_here.verdict != Verdict::exact)
          return excused();
        // All micro-batches times one factor is a loss scale: what is divided by it is compared.
        if (found_here.verdict == Verdict::rounding && found.judged.contains(prefix + "loss factor")) return excused();
        return found_here;
      },
      [&](const std::string&) { return micro_batch(); });
}

void Account::Scene::enter(probefile::rule::Outputs) {
  each(
      listed(left->outputs, "output "), listed(right->outputs, "output "),
      [&](const std::string& name, const Tensor* x, const Tensor* y) {
        const std::string module = name.substr(7, name.rfind('/') - 7);
        const bool parted = a.parted.contains(module) || b.parted.contains(module);
        if (parted && !alike) return excused();  // parts that only their ranks can join
        return tensor(name, *x, *y);
      },
      [&](const std::string&) { return micro_batch(); });
}

}  // namespace zs::probe
