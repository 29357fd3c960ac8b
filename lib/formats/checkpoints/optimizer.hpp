// SPDX-License-Identifier: Apache-2.0
// The state dict of a torch optimizer: moments and steps by parameter, identified by name or only by number.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "checkpoints/state.hpp"
#include "tensorfile/value.hpp"

namespace zs::checkpoints {

/// Adds {"state": {ID: {...}}, "param_groups": [{"params": [ID, ...], ...}]} to the parameters, and returns their names
/// by group. Numbered states belong to the parameters that "param_names" says. Without it they are assigned to the
/// parameters of `into` in order, except buffers, frozen and tied ones: group by group, by their shapes. If shapes
/// allow several assignments, or none, the states are kept as "#0", "#1", ... with a note. `dicts` has the name of its
/// file in the folder for each optimizer of the training; the states of several are "#0.0", "#1.0", ...
std::vector<std::vector<std::string>> add_optimizer(
    State& into, const std::vector<std::pair<std::string, tensorfile::Value>>& dicts);

/// The parameter of each numbered state, or an empty list if that is ambiguous. `groups` has the shapes of each group's
/// states, `parameters` those of the model's.
std::vector<std::vector<std::size_t>> match(const std::vector<std::vector<tensorfile::Shape>>& groups,
                                            const std::vector<tensorfile::Shape>& parameters);

/// Sorts the names of parameters into the order in which Hugging Face's models create their modules. Numbered
/// states and flat groups have this order. False if a name belongs to no family with a known order.
bool sort_as_modules(std::vector<std::string>& names);

/// Whether `value` is an optimizer's state dict.
bool is_optimizer(const tensorfile::Value* value);

/// The settings of a group, "lr" and others, as text; not its parameters.
std::map<std::string, std::string> hyper_of(const tensorfile::Value& group);

}  // namespace zs::checkpoints
