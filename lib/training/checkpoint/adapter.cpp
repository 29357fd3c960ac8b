// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/adapter.hpp"

#include <set>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/mapped.hpp"

namespace zs::checkpoint {

AdapterWeights::AdapterWeights(const unit::Units& units, const std::string& folder)
    : file_(tensorfile::open_state_dict(folder + kAdapterWeights)) {
  std::set<std::string> taken;
  for (const auto& unit : units) {
    units_.emplace_back();
    for (const unit::Parameter& parameter : unit->parameters()) {
      const std::string name = kInPeft + parameter.name;
      // A parameter that is neither in the file nor trained has the model's own values.
      if (!parameter.added && !parameter.trained && !file_.find(name)) continue;
      units_.back().push_back(placed(file_, name, parameter));
      taken.insert(name);
    }
  }
  for (const auto& entry : file_.entries()) {
    if (!taken.contains(entry.name))
      throw Error(file_.path(), 0, "has " + entry.name + ", for which the model has no place: it is of another model");
  }
}

std::string AdapterWeights::hash() const { return sha256(Mapping::open(path())->bytes()); }

}  // namespace zs::checkpoint
