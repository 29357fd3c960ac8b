// SPDX-License-Identifier: Apache-2.0
// Python's values as JSON and back, without loss; their tensors are elsewhere, by name.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tensorfile/value.hpp"

namespace zs::checkpoints {

/// `take` gets each tensor within `value` with a name made of `name` and its keys, and returns the name that it has
/// given to it.
using TakeTensor = std::function<std::string(const std::string& name, const tensorfile::Tensor& tensor)>;
nlohmann::ordered_json json_of(const tensorfile::Value& value, const std::string& name, const TakeTensor& take);

/// The value; `give` returns a tensor by its name. Throws nlohmann's exceptions if it is no JSON of json_of().
using GiveTensor = std::function<tensorfile::Tensor(const std::string& name)>;
tensorfile::Value value_of_json(const nlohmann::ordered_json& json, const GiveTensor& give);

}  // namespace zs::checkpoints
