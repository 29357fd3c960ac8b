// SPDX-License-Identifier: Apache-2.0
#include "probe/matching.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/words.hpp"

namespace zs::probe {
namespace {

std::string text_of(std::vector<std::string> samples) {
  std::sort(samples.begin(), samples.end());
  return joined(samples, " ", [](const std::string& one) { return one; });
}

/// The samples of each micro-batch; empty if one is unknown.
std::multiset<std::string> batches(const Step& step) {
  std::multiset<std::string> found;
  for (const auto& [rank, row] : step.ranks) {
    for (const auto& batch : row.batch) {
      if (batch.empty()) return {};
      found.insert(text_of(batch));
    }
  }
  return found;
}

std::multiset<std::size_t> sizes(const Step& step) {
  std::multiset<std::size_t> found;
  for (const auto& [rank, row] : step.ranks) {
    for (const auto& batch : row.batch) found.insert(batch.size());
  }
  return found;
}

}  // namespace

bool same_micro_batches(const Step& a, const Step& b) {
  const auto mine = batches(a);
  return !mine.empty() && mine == batches(b);
}

std::map<std::pair<int, int>, std::string> names_of_micro_batches(const Step& step, bool by_samples) {
  std::map<std::pair<int, int>, std::string> names;
  std::map<std::string, int> seen;
  for (const auto& [rank, row] : step.ranks) {
    const std::size_t count = std::max({row.batch.size(), row.losses.size(), row.targets.size()});
    for (std::size_t micro = 0; micro < count; ++micro) {
      std::string name = std::to_string(micro) + " of rank " + std::to_string(rank);
      if (by_samples && micro < row.batch.size()) {
        const std::string samples = text_of(row.batch[micro]);
        name = samples + " #" + std::to_string(++seen[samples]);
      }
      names[{rank, static_cast<int>(micro)}] = name;
    }
  }
  return names;
}

bool cut_alike(const Step& a, const Step& b) {
  const auto mine = sizes(a), theirs = sizes(b);
  if (mine.empty() || theirs.empty())  // unknown: as many contributions, or none on a side
    return a.locals.size() == b.locals.size() || a.locals.empty() || b.locals.empty();
  return mine == theirs;
}

std::vector<std::pair<const Contribution*, const Contribution*>> matched(const Step& a, const Step& b) {
  const bool by_samples = same_micro_batches(a, b);
  const auto listed = [&](const Step& step) {
    std::map<std::string, const Contribution*> found;
    std::map<std::string, int> seen;
    for (const auto& [key, one] : step.locals) {
      std::string name = std::to_string(key.first) + "/" + std::to_string(key.second);
      if (by_samples && !one.samples.empty()) {
        const std::string samples = text_of(one.samples);
        name = samples + " #" + std::to_string(++seen[samples]);
      }
      found[name] = &one;
    }
    return found;
  };
  std::vector<std::pair<const Contribution*, const Contribution*>> pairs;
  const auto mine = listed(a), theirs = listed(b);
  for (const auto& [name, left] : mine) {
    if (const auto right = theirs.find(name); right != theirs.end()) pairs.emplace_back(left, right->second);
  }
  std::sort(pairs.begin(), pairs.end(), [](const auto& x, const auto& y) {
    return std::pair{x.first->by, x.first->micro} < std::pair{y.first->by, y.first->micro};
  });
  return pairs;
}

std::vector<std::pair<const Contribution*, const Contribution*>> along(const Step& a, const Step& b) {
  std::vector<std::pair<const Contribution*, const Contribution*>> pairs;
  std::set<const Contribution*> taken;
  for (const auto& [key, left] : a.locals) {
    const Contribution* best = nullptr;
    double most = 0.9;
    for (const auto& [other, right] : b.locals) {
      double product = 0, x = 0, y = 0;
      for (const auto& [name, tensor] : left.tensors.all()) {
        const Tensor* const partner = right.tensors.find(name);
        if (!partner || partner->sketch.size() != tensor.sketch.size()) continue;
        product += dot(tensor.sketch, partner->sketch);
        x += dot(tensor.sketch, tensor.sketch);
        y += dot(partner->sketch, partner->sketch);
      }
      const double cosine = x > 0 && y > 0 ? std::fabs(product) / std::sqrt(x * y) : 0;
      if (cosine > most && !taken.contains(&right)) most = cosine, best = &right;
    }
    if (!best) return {};
    taken.insert(best);
    pairs.emplace_back(&left, best);
  }
  return pairs;
}

}  // namespace zs::probe
