// SPDX-License-Identifier: Apache-2.0
#include "token/value.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace zs::token {

using Json = nlohmann::json;

void Value::wrong(const std::string& what) const { throw Error(*path_, 0, key_.empty() ? what : key_ + ": " + what); }

void Value::unknown() const {
  std::string text = json_->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  wrong(printable(text) + " is not known to zs");
}

Value Value::operator[](const std::string& key) const {
  static const Json kNull;
  if (!json_->is_object()) wrong("expected an object");
  const auto at = json_->find(key);
  return {*path_, key_.empty() ? key : key_ + "." + key, at == json_->end() ? kNull : *at};
}

std::vector<Value> Value::items() const {
  if (!json_->is_array()) wrong("expected a list");
  std::vector<Value> items;
  for (std::size_t i = 0; i < json_->size(); ++i)
    items.emplace_back(*path_, key_ + "[" + std::to_string(i) + "]", (*json_)[i]);
  return items;
}

const Json& Value::object() const {
  if (!json_->is_object()) wrong("expected an object");
  return *json_;
}

const std::string& Value::text() const {
  if (!json_->is_string()) wrong("expected text");
  return json_->get_ref<const std::string&>();
}

bool Value::flag(std::optional<bool> fallback) const {
  if (json_->is_null() && fallback) return *fallback;
  if (!json_->is_boolean()) wrong("expected true or false");
  return json_->get<bool>();
}

Id Value::id() const {
  if (!json_->is_number_unsigned() || json_->get<std::uint64_t>() >= UINT32_MAX) wrong("expected an id, from 0 on");
  return json_->get<Id>();
}

const Value& Value::only(const std::vector<std::string>& keys) const {
  for (const auto& [key, value] : object().items()) {
    if (std::ranges::find(keys, key) == keys.end()) (*this)[key].unknown();
  }
  return *this;
}

}  // namespace zs::token
