// SPDX-License-Identifier: Apache-2.0
// The items of a checkpoint: the float32 numbers of a parameter, its first moment, its step, a random state.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "checkpoints/state.hpp"
#include "state/diff.hpp"

namespace zs::state {

/// The numbers of an item: a checkpoint's tensor, or one that is composed of several on access.
struct Numbers {
  tensorfile::Dtype dtype = tensorfile::Dtype::f32;
  tensorfile::Shape shape{};
  std::function<std::string()> defect{};                                ///< as defect() of a Whole
  std::function<tensorfile::Tensor(const std::string& what)> joined{};  ///< as joined() of a Whole

  std::int64_t count() const;
};
using NumbersPtr = std::shared_ptr<const Numbers>;

/// A tensor, or a text.
struct DiffItem {
  std::string kind{}, name{};
  NumbersPtr tensor{};
  std::string text{};
  bool alias = false;      ///< another name of an item that is already listed
  bool weight = false;     ///< numbers of the model, not of its optimizer
  bool spare = false;      ///< a setting that not every program writes
  bool of_layout = false;  ///< not every layout writes it: a float32 weight with the bits of its master
  bool derived = false;    ///< like none: no file has it, but another item that says the same; a setting that is None
};
using Items = std::map<std::string, DiffItem>;  ///< by kind and name

using Rename = std::function<std::string(const std::string&)>;

/// Makes the names of two checkpoints agree: by the lines of `names`, without wrappers, and without the first word that
/// all names of a side share, if more names are equal then.
std::pair<Rename, Rename> joined_names(const State& a, const State& b, const Names& names);

/// Schedules of PyTorch count the steps done, last_epoch; those of DeepSpeed from 0, last_batch_iteration. Adds the
/// missing one to a checkpoint's facts. Returns a sentence about what was added.
std::string count_both_ways(std::map<std::string, std::string>& facts);

/// All items of a checkpoint. Parameters that the lines of `names` combine on this side (`first`: A) are replaced by
/// the result. Throws Error if shapes, types or steps of the parts do not match.
Items items_of(const State& state, const Rename& rename, const Names& names, bool first);

}  // namespace zs::state
