// SPDX-License-Identifier: Apache-2.0
// The adapters of a model in the format of peft's save_pretrained: adapter_model.safetensors, with only the trained
// parameters, each with its name after "base_model.model.".
#pragma once
#include <span>
#include <string>
#include <vector>

#include "checkpoint/weights.hpp"
#include "tensorfile/state_dict.hpp"
#include "unit/unit.hpp"

namespace zs::checkpoint {

inline constexpr const char *kInPeft = "base_model.model.", *kAdapterWeights = "/adapter_model.safetensors";

class AdapterWeights {
 public:
  /// Finds the adapters of the units, and other trained parameters. Throws zs::Error, located, if anything is missing,
  /// additional or of another shape. The units must outlive it.
  AdapterWeights(const unit::Units& units, const std::string& folder);

  /// Overwrites the file's part of a unit's flat buffer: values.size() elements from `begin` on.
  void read(std::size_t unit, std::int64_t begin, std::span<float> values) const {
    checkpoint::read(units_[unit], begin, values);
  }
  const std::string& path() const { return file_.path(); }
  /// A hash of everything read, for ranks to compare.
  std::string hash() const;

 private:
  tensorfile::StateDict file_;
  std::vector<std::vector<Placed>> units_;
};

}  // namespace zs::checkpoint
