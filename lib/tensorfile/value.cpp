// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/value.hpp"

#include <array>
#include <cstring>

#include "base/error.hpp"

namespace zs::tensorfile {

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

const Value* Value::find(std::string_view key) const {
  const Dict* const dict = get<Dict>();
  if (!dict) return nullptr;
  for (const Item& item : dict->items) {
    const std::string* const name = item.key.get<std::string>();
    if (name && *name == key) return &item.value;
  }
  return nullptr;
}

std::string_view Value::type_name() const {
  constexpr std::array<std::string_view, 9> kNames = {"none", "bool",  "int",  "float", "str",
                                                      "list", "tuple", "dict", "tensor"};
  return kNames[held_.index()];
}

}  // namespace zs::tensorfile
