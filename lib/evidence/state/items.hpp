// SPDX-License-Identifier: Apache-2.0
// What a checkpoint has, a thing each: the float32 numbers of a parameter, its first moment, its step, a random state.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "state/diff.hpp"
#include "state/state.hpp"

namespace zs::state {

/// The numbers of a thing: a checkpoint's tensor, or one that is made of several when it is looked at.
struct Numbers {
  tensorfile::Dtype dtype = tensorfile::Dtype::f32;
  tensorfile::Shape shape{};
  std::function<std::string()> defect{};                                ///< as defect() of a Whole
  std::function<tensorfile::Tensor(const std::string& what)> joined{};  ///< as joined() of one

  std::int64_t count() const;
};
using NumbersPtr = std::shared_ptr<const Numbers>;

/// A tensor, or a text.
struct DiffItem {
  std::string kind, name;
  NumbersPtr tensor{};
  std::string text{};
  bool alias = false;  ///< another name of what stands in the list already
};
using Items = std::map<std::string, DiffItem>;  ///< by kind and name

using Rename = std::function<std::string(const std::string&)>;

/// How the names of two checkpoints are written alike: by the lines of `names`, wrappers aside, and without the first
/// word that all names of a side have, where more names are the same then.
std::pair<Rename, Rename> joined_names(const State& a, const State& b, const Names& names);

/// All that a checkpoint has. What its parameters are made into by the lines of `names` for this side (`first`: A)
/// stands in place of these. Throws Error where shapes, types or steps of the parts do not fit.
Items items_of(const State& state, const Rename& rename, const Names& names, bool first);

}  // namespace zs::state
