// SPDX-License-Identifier: Apache-2.0
#include "probefile/run.hpp"

#include <algorithm>
#include <tuple>

#include "probefile/check.hpp"

namespace zs::probefile {

std::string without(const std::string& name, const std::string& prefix) {
  const std::size_t slash = name.find('/');
  const std::size_t at = slash == std::string::npos ? 0 : slash + 1;
  return prefix.empty() || name.compare(at, prefix.size(), prefix) != 0
             ? name
             : name.substr(0, at) + name.substr(at + prefix.size());
}

std::vector<double> Step::rates() const {
  std::vector<double> found;
  for (const Group& group : groups) {
    const auto rate = group.options.find("lr");
    if (rate != group.options.end() && rate->second.numbers.size() == 1) found.push_back(rate->second.numbers.front());
  }
  return found;
}

std::string Run::how() const {
  const auto first = parts.find(0);
  return first == parts.end() || first->second.empty() || !first->second.back().end ? ""
                                                                                    : first->second.back().end->how;
}

bool Run::leaves_out(std::int64_t step) const {
  if (step > end) return false;
  return std::ranges::any_of(parts, [&](const auto& rank) {
    const auto part =
        std::find_if(rank.second.rbegin(), rank.second.rend(), [&](const Part& p) { return p.start < step; });
    return part != rank.second.rend() && part->end && step <= part->end->end && !due(*part, step);
  });
}

bool Tensor::same(const Tensor& other) const {
  return dtype == other.dtype && total == other.total && shape == other.shape && held == other.held &&
         digest == other.digest;
}

void Tensors::rename(const std::string& name, const std::string& as) {
  auto known = index_.extract(name);
  held_[known.mapped()].first = as;
  known.key() = as;
  index_.insert(std::move(known));
}

Tensor& Tensors::at(const std::string& name) {
  const auto [place, added] = index_.try_emplace(name, held_.size());
  if (added) held_.emplace_back(name, Tensor());
  return held_[place->second].second;
}

const Tensor* Tensors::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &held_[found->second].second;
}

void Tensors::strip(const std::string& prefix) {
  index_.clear();
  for (std::size_t i = 0; i < held_.size(); ++i) {
    std::string& name = held_[i].first;
    name = without(name, prefix);
    index_[name] = i;
  }
}

bool Tensors::is_short() const {
  return std::ranges::any_of(held_,
                             [](const auto& one) { return one.second.total >= 32 && one.second.sketch.size() == 8; });
}

void Tensors::shorten() {
  for (auto& [name, tensor] : held_) {
    for (std::size_t i = 8; i < tensor.sketch.size(); ++i) tensor.sketch[i % 8] += tensor.sketch[i];
    tensor.sketch.resize(std::min<std::size_t>(8, tensor.sketch.size()));
    tensor.elements.clear(), tensor.shortened = true;
  }
}

namespace {

bool is_short(const Run& run) {
  return std::ranges::any_of(run.starts, [](const auto& one) { return one.second.is_short(); }) ||
         std::ranges::any_of(run.steps, [](const auto& one) { return one.second.tensors.is_short(); });
}

void shorten(Run& run) {
  for (auto& [number, step] : run.steps) {
    step.tensors.shorten(), step.outputs.shorten();
    for (auto& [key, local] : step.locals) local.tensors.shorten();
  }
  for (auto& [number, tensors] : run.starts) tensors.shorten();
}

std::set<std::string> parameters(const Run& run) {
  std::set<std::string> names;
  if (run.steps.empty()) return names;
  for (const auto& [name, tensor] : run.steps.begin()->second.tensors.all()) {
    if (name.starts_with("param/")) names.insert(name.substr(6));
  }
  return names;
}

/// The modules that all names begin with: "net.", "module.net.".
std::string common_prefix(const std::set<std::string>& names) {
  if (names.empty()) return "";
  std::string prefix = *names.begin();
  for (const std::string& name : names) {
    std::size_t same = 0;
    while (same < std::min(prefix.size(), name.size()) && prefix[same] == name[same]) ++same;
    prefix.resize(same);
  }
  return prefix.substr(0, prefix.rfind('.') + 1);
}

void strip(Run& run, const std::string& prefix) {
  run.prefix = prefix;
  for (auto& [number, step] : run.steps) {
    step.tensors.strip(prefix);
    for (auto& [key, local] : step.locals) local.tensors.strip(prefix);
  }
  for (auto& [number, tensors] : run.starts) tensors.strip(prefix);
  const auto without = [&](const std::string& name) {
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  };
  const auto renamed = [&](const std::set<std::string>& names) {
    std::set<std::string> made;
    for (const std::string& name : names) made.insert(without(name));
    return made;
  };
  std::map<std::string, std::vector<std::string>> ties;
  for (auto& [name, others] : run.ties) {
    for (std::string& other : others) other = without(other);
    ties[without(name)] = others;
  }
  decltype(run.replicas) replicas;
  for (const auto& [key, ranks] : run.replicas) {
    const std::size_t at = key.second.find('/') + 1;
    replicas[{key.first, key.second.substr(0, at) + without(key.second.substr(at))}] = ranks;
  }
  run.frozen = renamed(run.frozen), run.loose = renamed(run.loose), run.ties = ties, run.replicas = replicas;
  const auto rename = [&](std::vector<Group>& groups) {
    for (Group& group : groups) {
      for (std::string& name : group.params) name = without(name);
    }
  };
  for (auto& [number, step] : run.steps) {
    rename(step.groups);
    for (auto& [rank, row] : step.ranks) {
      rename(row.groups);
      decltype(row.counters) counters;
      for (auto& [count, names] : row.counters) {
        for (std::string& name : names) name = without(name);
        counters[count] = names;
      }
      row.counters = counters;
    }
  }
}

}  // namespace

void align(Run& a, Run& b) {
  if (const bool short_a = is_short(a); short_a != is_short(b)) shorten(short_a ? b : a);
  const auto left = parameters(a), right = parameters(b);
  if (std::ranges::any_of(left, [&](const std::string& name) { return right.contains(name); })) return;
  for (const auto& [run, mine, theirs] : {std::tuple{&a, &left, &right}, {&b, &right, &left}}) {
    const std::string prefix = common_prefix(*mine);
    if (prefix.empty()) continue;
    if (std::ranges::any_of(*mine,
                            [&](const std::string& name) { return theirs->contains(name.substr(prefix.size())); }))
      return strip(*run, prefix);
  }
}

}  // namespace zs::probefile
