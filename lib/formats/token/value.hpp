// SPDX-License-Identifier: Apache-2.0
// JSON of a tokenizer's files: each value knows the key that leads to it, which its errors name.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "token/bpe.hpp"

namespace zs::token {

/// A value of a file. Its accessors throw Error with file and key if it is another thing.
class Value {
  using Json = nlohmann::json;

 public:
  /// REQUIRES: path and json outlive it.
  Value(const std::string& path, std::string key, const Json& json)
      : path_(&path), key_(std::move(key)), json_(&json) {}

  [[noreturn]] void wrong(const std::string& what) const;
  [[noreturn]] void unknown() const;

  std::string place() const { return *path_ + ": " + key_; }
  const std::string& file() const { return *path_; }
  bool is_null() const { return json_->is_null(); }
  bool is_string() const { return json_->is_string(); }
  bool is_array() const { return json_->is_array(); }
  bool is_object() const { return json_->is_object(); }
  /// A key of this object; null if it is missing.
  Value operator[](const std::string& key) const;
  std::vector<Value> items() const;
  const Json& object() const;
  const std::string& text() const;
  bool flag(std::optional<bool> fallback = {}) const;
  Id id() const;
  /// Throws Error at a key that is none of these.
  const Value& only(const std::vector<std::string>& keys) const;

 private:
  const std::string* path_;
  std::string key_;
  const Json* json_;
};

}  // namespace zs::token
