// SPDX-License-Identifier: Apache-2.0
#include "plot/kind.hpp"

#include <functional>

#include "base/error.hpp"
#include "base/name.hpp"
#include "plot/condition.hpp"
#include "plot/figures.hpp"

namespace zs::plot {
namespace {

using Maker = std::function<Figure(const metric::Store&, const std::vector<Condition>&)>;

struct Kind {
  std::string name;
  Maker make;
};

const std::vector<Kind>& table() {
  static const std::vector<Kind> all = {
      {"loss", [](const metric::Store&, const std::vector<Condition>& conditions) { return loss_figure(conditions); }},
      {"time",
       [](const metric::Store& store, const std::vector<Condition>& conditions) {
         const auto warmup = store.attributes.find("warmup");
         return time_figure(conditions, warmup == store.attributes.end() ? "" : warmup->second);
       }},
      {"memory", [](const metric::Store&, const std::vector<Condition>& conditions) { return memory_figure(conditions); }},
  };
  return all;
}

}  // namespace

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : table()) names.push_back(kind.name);
  return names;
}

Figure figure(const std::string& kind, const metric::Store& store, const std::string& source) {
  for (const Kind& one : table()) {
    if (one.name == kind) return one.make(store, conditions(store, source));
  }
  std::string all;
  for (const std::string& name : kinds()) all += (all.empty() ? "" : ", ") + name;
  const std::string near = did_you_mean(kind, kinds());
  throw UsageError("unknown kind of figure '" + kind + "'" + (near.empty() ? ": the kinds are " + all : near));
}

}  // namespace zs::plot
