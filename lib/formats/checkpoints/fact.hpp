// SPDX-License-Identifier: Apache-2.0
// The values of a Python file besides tensors of the model, as text: schedules, scalers, random states, settings.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "checkpoints/state.hpp"
#include "tensorfile/value.hpp"

namespace zs::checkpoints {

/// A value as text: equal texts mean equal values. A tensor has its type and shape, "i64[] 3". A text of more than 100
/// characters, and a tensor of several elements, is replaced by its SHA-256.
std::string text_of(const tensorfile::Value& value);

/// Adds every value within `value` as a fact: `name` and its keys joined by dots. No fact replaces another: a name that
/// is taken gets a "'".
void add_facts(State& into, const std::string& name, const tensorfile::Value& value);

/// Adds the learning rate schedules: "schedule.last_epoch" of one; "schedule.0.last_epoch" of the first of several.
void add_schedules(State& into, const std::vector<tensorfile::Value>& schedules);

/// Adds every value of a JSON document, also an empty list or object: `name` and its keys joined by dots. 1.0 is 1.
void add_json(std::map<std::string, std::string>& into, const std::string& name, const nlohmann::json& value);

/// A number: an int, a float, a truth value, a tensor of one element, or a Python object with one number (an
/// enumeration). Nothing otherwise, and if `value` is null.
std::optional<double> number_of(const tensorfile::Value* value);
std::optional<std::int64_t> integer_of(const tensorfile::Value* value);

/// Records the classes of all objects within `value`, and the storages of its tensors. Each reader calls it for all
/// that it opens: verify checks these bytes, whatever they become.
void note_content(State& into, const tensorfile::Value& value);

/// The tensors of a dict by name; other values are skipped. Empty if `value` is null or no dict.
std::vector<std::pair<std::string, tensorfile::Tensor>> tensors_of(const tensorfile::Value* value);

/// The value under keys of nested dicts; nullptr if there is none, or `value` is null.
const tensorfile::Value* within(const tensorfile::Value* value, std::initializer_list<std::string_view> keys);
/// The elements of a list or tuple; none if `value` is neither or null.
const std::vector<tensorfile::Value>& list_of(const tensorfile::Value* value);
/// The items of a dict, or of an object that is one; none if `value` is neither or null.
const std::vector<tensorfile::Item>& items_of(const tensorfile::Value* value);
/// The sizes in a torch.Size; 0 for anything but a number.
tensorfile::Shape shape_of(const tensorfile::Value& value);

/// A key of a dict as text: "fc1.weight", "0".
std::string key_text(const tensorfile::Value& key);

}  // namespace zs::checkpoints
