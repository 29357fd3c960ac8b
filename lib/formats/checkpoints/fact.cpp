// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/fact.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/checksum.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "base/words.hpp"

namespace zs::checkpoints {
namespace {

using tensorfile::Dict;
using tensorfile::Dtype;
using tensorfile::Item;
using tensorfile::List;
using tensorfile::Object;
using tensorfile::Tensor;
using tensorfile::Tuple;
using tensorfile::Value;

constexpr std::size_t kLongest = 100;

/// Gives the one element of a tensor as a number of its type. False if it has several, or is complex or of 8 bits.
template <class Take>
bool one_element(const Tensor& tensor, Take take) {
  if (tensor.count() != 1) return false;
  const auto of = [&](auto value) {
    read_raw(tensor, {reinterpret_cast<char*>(&value), sizeof value});
    return take(value), true;
  };
  switch (tensor.dtype) {
    case Dtype::boolean:
    case Dtype::u8:
      return of(std::uint8_t{});
    case Dtype::i8:
      return of(std::int8_t{});
    case Dtype::u16:
      return of(std::uint16_t{});
    case Dtype::i16:
      return of(std::int16_t{});
    case Dtype::u32:
      return of(std::uint32_t{});
    case Dtype::i32:
      return of(std::int32_t{});
    case Dtype::u64:
      return of(std::uint64_t{});
    case Dtype::i64:
      return of(std::int64_t{});
    case Dtype::f64:
      return of(double{});
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::f32: {
      float value = 0;
      read_f32(tensor, {&value, 1});
      return take(value), true;
    }
    default:
      return false;
  }
}

std::optional<double> single(const Tensor& tensor) {
  std::optional<double> number;
  one_element(tensor, [&](auto value) { number = static_cast<double>(value); });
  return number;
}

/// A tensor with its type and shape: a number exactly, else by its digest.
std::string tensor_text(const Tensor& tensor) {
  const std::string type = std::string(name_of(tensor.dtype)) + tensorfile::to_text(tensor.shape) + " ";
  std::string number;
  const bool one = one_element(tensor, [&](auto value) {
    if constexpr (std::is_floating_point_v<decltype(value)>)
      number = to_text(static_cast<double>(value));
    else
      number = std::to_string(value);
  });
  if (one) return type + number;
  std::string bytes;
  tensorfile::stream(tensor, [&](std::string_view part) { bytes.append(part); });
  return type + "sha256 " + sha256(bytes);
}

/// With a backslash before each backslash and quote, so that other texts remain others.
std::string escaped(const std::string& text) {
  std::string made;
  for (const char letter : text) made += (letter == '\\' || letter == '\'' ? "\\" : "") + std::string(1, letter);
  return made;
}

/// All of it, however long.
std::string spelt(const Value& value) {
  const auto items = [](const std::vector<Item>& held) {
    return "{" + zs::joined(held, ", ", [](const Item& item) { return spelt(item.key) + ": " + spelt(item.value); }) +
           "}";
  };
  if (value.is_none()) return "None";
  if (const bool* const truth = value.get<bool>()) return *truth ? "True" : "False";
  if (const std::int64_t* const number = value.get<std::int64_t>()) return to_text(*number);
  if (const double* const real = value.get<double>()) return to_text(*real);
  if (const std::string* const text = value.get<std::string>()) return "'" + printable(escaped(*text)) + "'";
  if (const List* const list = value.get<List>()) return "[" + zs::joined(list->values, ", ", spelt) + "]";
  if (const Tuple* const tuple = value.get<Tuple>()) return "(" + zs::joined(tuple->values, ", ", spelt) + ")";
  if (const Dict* const dict = value.get<Dict>()) return items(dict->items);
  if (const Tensor* const tensor = value.get<Tensor>()) return tensor_text(*tensor);
  const Object* const object = value.get<Object>();
  if (!object) return "";
  std::string text = object->name + "(" + zs::joined(object->arguments, ", ", spelt) + ")";
  if (!object->elements.empty()) text += "[" + zs::joined(object->elements, ", ", spelt) + "]";
  if (!object->items.empty()) text += items(object->items);
  for (const Value& state : object->state) text += spelt(state);
  return text;
}

}  // namespace

std::string text_of(const Value& value) {
  std::string text = spelt(value);
  if (text.size() <= kLongest || value.get<Tensor>()) return text;
  return std::string(value.type_name()) + " sha256 " + sha256(text);
}

std::string key_text(const Value& key) {
  const std::string* const text = key.get<std::string>();
  return text ? *text : text_of(key);
}

void add_facts(State& into, const std::string& name, const Value& value) {
  const Dict* const dict = value.get<Dict>();
  if (!dict || dict->items.empty()) {
    std::string free = name;
    while (into.facts.contains(free)) free += "'";  // two entries of a file that mean the same fact
    into.facts[free] = text_of(value);
    into.values[free] = value;
    return;
  }
  // {1: x, "1": y} and {"a": {"b": x}, "a.b": y}: the text of a key that has such a neighbour is quoted.
  std::map<std::string, int> texts;
  for (const Item& item : dict->items) ++texts[key_text(item.key)];
  for (const Item& item : dict->items) {
    const std::string text = key_text(item.key);
    bool quoted = texts.at(text) > 1 && item.key.get<std::string>();
    for (std::size_t at = 0; (at = text.find('.', at)) != std::string::npos; ++at)
      quoted = quoted || texts.contains(text.substr(0, at));
    add_facts(into, name + "." + (quoted ? "'" + text + "'" : text), item.value);
  }
}

void add_schedules(State& into, const std::vector<Value>& schedules) {
  for (std::size_t i = 0; i < schedules.size(); ++i)
    add_facts(into, schedules.size() > 1 ? "schedule." + std::to_string(i) : "schedule", schedules[i]);
}

void add_json(std::map<std::string, std::string>& into, const std::string& name, const nlohmann::json& value) {
  if (!value.is_structured() || value.empty()) {
    into[name] = value.is_string()         ? value.get<std::string>()
                 : value.is_number_float() ? to_text(value.get<double>())
                                           : value.dump();
    return;
  }
  std::size_t number = 0;
  for (const auto& [key, item] : value.items())
    add_json(into, (name.empty() ? "" : name + ".") + (value.is_array() ? std::to_string(number++) : key), item);
}

std::optional<double> number_of(const Value* value) {
  if (!value) return {};
  if (const bool* const truth = value->get<bool>()) return *truth ? 1 : 0;
  if (const std::int64_t* const number = value->get<std::int64_t>()) return static_cast<double>(*number);
  if (const double* const real = value->get<double>()) return *real;
  if (const Tensor* const tensor = value->get<Tensor>()) return single(*tensor);
  const Object* const object = value->get<Object>();
  return object && object->arguments.size() == 1 ? number_of(&object->arguments[0]) : std::nullopt;
}

std::optional<std::int64_t> integer_of(const Value* value) {
  if (value && value->get<std::int64_t>()) return *value->get<std::int64_t>();
  const auto number = number_of(value);
  if (!number || *number != std::floor(*number) || std::fabs(*number) > 0x1p53) return {};
  return static_cast<std::int64_t>(*number);
}

void note_content(State& into, const Value& value) {
  const auto note_list = [&](const std::vector<Value>& values) {
    for (const Value& each : values) note_content(into, each);
  };
  if (const List* const list = value.get<List>()) return note_list(list->values);
  if (const Tuple* const tuple = value.get<Tuple>()) return note_list(tuple->values);
  if (const Dict* const dict = value.get<Dict>()) {
    for (const Item& item : dict->items) note_content(into, item.key), note_content(into, item.value);
    return;
  }
  if (const Tensor* const tensor = value.get<Tensor>()) into.storages.push_back(tensor->storage);
  const Object* const object = value.get<Object>();
  if (!object) return;
  if (std::ranges::find(into.objects, object->name) == into.objects.end()) into.objects.push_back(object->name);
  note_list(object->arguments), note_list(object->state), note_list(object->elements);
  for (const Item& item : object->items) note_content(into, item.key), note_content(into, item.value);
}

std::vector<std::pair<std::string, Tensor>> tensors_of(const Value* value) {
  std::vector<std::pair<std::string, Tensor>> found;
  const Dict* const dict = value ? value->get<Dict>() : nullptr;
  if (!dict) return found;
  for (const Item& item : dict->items) {
    const std::string* const name = item.key.get<std::string>();
    const Tensor* const tensor = item.value.get<Tensor>();
    if (name && tensor) found.emplace_back(*name, *tensor);
  }
  return found;
}

tensorfile::Shape shape_of(const Value& value) {
  tensorfile::Shape shape;
  if (const auto* const tuple = value.get<tensorfile::Tuple>()) {
    for (const Value& size : tuple->values) shape.push_back(size.get<std::int64_t>() ? *size.get<std::int64_t>() : 0);
  }
  return shape;
}

const Value* within(const Value* value, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) value = value ? value->find(key) : nullptr;
  return value;
}

const std::vector<Value>& list_of(const Value* value) {
  static const std::vector<Value> none;
  if (!value) return none;
  if (const List* const list = value->get<List>()) return list->values;
  if (const auto* const tuple = value->get<tensorfile::Tuple>()) return tuple->values;
  return none;
}

const std::vector<Item>& items_of(const Value* value) {
  static const std::vector<Item> none;
  if (!value) return none;
  if (const Dict* const dict = value->get<Dict>()) return dict->items;
  if (const auto* const object = value->get<tensorfile::Object>()) return object->items;
  return none;
}

}  // namespace zs::checkpoints
