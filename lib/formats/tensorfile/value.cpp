// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/value.hpp"

#include <array>

#include "base/error.hpp"

namespace zs::tensorfile {

Object::Object(std::string name, std::vector<Value> arguments, std::vector<Value> state, std::vector<Value> elements,
               std::vector<Item> items)
    : name(std::move(name)),
      arguments(std::move(arguments)),
      state(std::move(state)),
      elements(std::move(elements)),
      items(std::move(items)) {}

Value::Value(double value) : held_(value) {}
Value::Value(std::string value) : held_(std::move(value)) {}
Value::Value(std::string_view value) : held_(std::string(value)) {}
Value::Value(const char* value) : held_(std::string(value)) {}
Value::Value(List value) : held_(std::move(value)) {}
Value::Value(Tuple value) : held_(std::move(value)) {}
Value::Value(Dict value) : held_(std::move(value)) {}
Value::Value(Tensor value) : held_(std::move(value)) {}
Value::Value(Object value) : held_(std::move(value)) {}

double Value::real(std::string_view name) const {
  if (const double* value = get<double>()) return *value;
  if (const std::int64_t* value = get<std::int64_t>()) return static_cast<double>(*value);
  const Tensor* const tensor = get<Tensor>();
  if (!tensor || tensor->dtype != Dtype::f64 || tensor->count() != 1) {
    throw Error(name, 0, "is a " + std::string(type_name()) + ", expected a number");
  }
  double value = 0;
  read_raw(*tensor, {reinterpret_cast<char*>(&value), sizeof value});
  return value;
}

std::int64_t Value::integer(std::string_view name) const {
  if (const std::int64_t* value = get<std::int64_t>()) return *value;
  throw Error(name, 0, "is a " + std::string(type_name()) + ", expected an integer");
}

namespace {

const Value* find_in(const std::vector<Item>& items, std::string_view key) {
  for (const Item& item : items) {
    const std::string* const name = item.key.get<std::string>();
    if (name && *name == key) return &item.value;
  }
  return nullptr;
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  if (const Object* const object = get<Object>()) return object->find(key);
  const Dict* const dict = get<Dict>();
  return dict ? find_in(dict->items, key) : nullptr;
}

const Value* Object::find(std::string_view key) const {
  if (const Value* const item = find_in(items, key)) return item;
  return state.empty() ? nullptr : state.front().find(key);
}

std::string_view Value::type_name() const {
  constexpr std::array<std::string_view, 10> kNames = {"none", "bool",  "int",  "float",  "str",
                                                       "list", "tuple", "dict", "tensor", "object"};
  return kNames[held_.index()];
}

}  // namespace zs::tensorfile
