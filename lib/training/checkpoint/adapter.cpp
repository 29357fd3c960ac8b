// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/adapter.hpp"

#include <algorithm>
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
      // What is neither there nor trained is the model's own.
      if (!parameter.added && !parameter.trained && !file_.find(name)) continue;
      const tensorfile::Tensor& tensor = file_.at(name);
      if (tensor.shape != parameter.shape)
        throw Error(file_.path(), 0,
                    name + " has the shape " + tensorfile::to_text(tensor.shape) + ", the model " +
                        tensorfile::to_text(parameter.shape) + " by " + parameter.keys);
      units_.back().push_back({parameter.offset, tensor});
      taken.insert(name);
    }
  }
  for (const auto& entry : file_.entries()) {
    if (!taken.contains(entry.name))
      throw Error(file_.path(), 0, "has " + entry.name + ", for which the model has no place: it is of another model");
  }
}

void AdapterWeights::read(std::size_t unit, std::int64_t begin, std::span<float> values) const {
  const std::int64_t end = begin + static_cast<std::int64_t>(values.size());
  for (const Place& place : units_[unit]) {
    const std::int64_t first = std::max(begin, place.offset), last = std::min(end, place.offset + place.tensor.count());
    if (first >= last) continue;
    tensorfile::read_f32(
        place.tensor, first - place.offset,
        values.subspan(static_cast<std::size_t>(first - begin), static_cast<std::size_t>(last - first)));
  }
}

std::string AdapterWeights::hash() const { return sha256(Mapping::open(path())->bytes()); }

}  // namespace zs::checkpoint
