// SPDX-License-Identifier: Apache-2.0
// The adapters of a model as peft's save_pretrained writes them: adapter_model.safetensors, with those parameters alone
// that are trained, each under its name behind "base_model.model.".
#pragma once
#include <span>
#include <string>
#include <vector>

#include "tensorfile/state_dict.hpp"
#include "unit/unit.hpp"

namespace zs::checkpoint {

inline constexpr const char *kInPeft = "base_model.model.", *kAdapterWeights = "/adapter_model.safetensors";

class AdapterWeights {
 public:
  /// Finds the adapters of the units, and what is trained whole beside them. Throws zs::Error, located, at what is
  /// missing, is more, or has another shape. The units outlive it.
  AdapterWeights(const unit::Units& units, const std::string& folder);

  /// Overwrites what the file has of a unit's flat buffer: values.size() elements from `begin` on.
  void read(std::size_t unit, std::int64_t begin, std::span<float> values) const;
  const std::string& path() const { return file_.path(); }
  /// Of all that is read: for ranks to compare.
  std::string hash() const;

 private:
  struct Place {
    std::int64_t offset;
    tensorfile::Tensor tensor;
  };
  tensorfile::StateDict file_;
  std::vector<std::vector<Place>> units_;
};

}  // namespace zs::checkpoint
