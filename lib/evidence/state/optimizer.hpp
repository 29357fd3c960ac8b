// SPDX-License-Identifier: Apache-2.0
// The state dict of a torch optimizer: moments and steps by parameter, which it knows by name or only by number.
#pragma once
#include <string>
#include <vector>

#include "state/state.hpp"
#include "tensorfile/value.hpp"

namespace zs::state {

/// Adds {"state": {ID: {...}}, "param_groups": [{"params": [ID, ...], ...}]} to the parameters. Numbered states are
/// given to the parameters of `into`, in their order, which are no buffers, frozen or tied: group by group, by their
/// shapes. Where shapes leave more than one way, or none, the states are kept as "#0", "#1", ... and a note says so.
/// `file` is the file's name in the folder.
void add_optimizer(State& into, const tensorfile::Value& dict, const std::string& file, int rank = -1);

/// Which parameter each of the numbered states is of, or an empty list where that is not certain. `groups` has the
/// shapes of each group's states, `parameters` those of the model's.
std::vector<std::vector<std::size_t>> match(const std::vector<std::vector<tensorfile::Shape>>& groups,
                                            const std::vector<tensorfile::Shape>& parameters);

/// Sorts the names of parameters into the order in which the models of Hugging Face make their modules, which is that
/// of numbered states and of flat groups. False where a name is not of a family whose order is known.
bool sort_as_modules(std::vector<std::string>& names);

/// Whether `value` is such a state dict.
bool is_optimizer(const tensorfile::Value* value);

/// The settings of a group, "lr" and others, as text; not its parameters.
std::map<std::string, std::string> hyper_of(const tensorfile::Value& group);

}  // namespace zs::state
