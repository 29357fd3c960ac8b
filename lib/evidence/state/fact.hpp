// SPDX-License-Identifier: Apache-2.0
// What a file of Python's says beside tensors of the model, as text: schedules, scalers, random states, settings.
#pragma once
#include <optional>
#include <string>

#include "state/state.hpp"
#include "tensorfile/value.hpp"

namespace zs::state {

/// A value as text. One of more than 100 characters, and a tensor of several elements, is told by its SHA-256, so that
/// the same text means the same value.
std::string text_of(const tensorfile::Value& value);

/// Every value within `value` as a fact, its names joined by points behind `name`.
void add_facts(State& into, const std::string& name, const tensorfile::Value& value);

/// A number: an int, a float, a truth value, a tensor of one element, or an object of Python's made of one number (an
/// enumeration). Nothing otherwise, also where `value` is null.
std::optional<double> number_of(const tensorfile::Value* value);
std::optional<std::int64_t> integer_of(const tensorfile::Value* value);

/// Notes the classes of all objects within `value`.
void note_objects(State& into, const tensorfile::Value& value);

/// The tensors of a dict by name; what is no tensor is passed over. Nothing where `value` is null or no dict.
std::vector<std::pair<std::string, tensorfile::Tensor>> tensors_of(const tensorfile::Value* value);

/// The elements of a list or tuple; none where it is neither or null.
const std::vector<tensorfile::Value>& list_of(const tensorfile::Value* value);
/// The items of a dict, or of an object that is one; none where it is neither or null.
const std::vector<tensorfile::Item>& items_of(const tensorfile::Value* value);
/// The numbers of a torch.Size; what is no number is 0.
tensorfile::Shape shape_of(const tensorfile::Value& value);

/// A key of a dict as text: "fc1.weight", "0".
std::string key_text(const tensorfile::Value& key);

}  // namespace zs::state
