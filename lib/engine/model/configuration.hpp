// SPDX-License-Identifier: Apache-2.0
// A model's config.json in Hugging Face's format: values by key, each with its type and range.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace zs::model {

class Configuration {
 public:
  /// Errors begin with `where`: the path of the file, or the model's name.
  Configuration(std::string where, const nlohmann::json& values);
  /// Reads a file. Throws zs::Error, located, if it is not a JSON object.
  static Configuration read(const std::string& path);

  /// A missing or null key has its fallback, as in Hugging Face's classes. Each throws zs::Error, with file and key, at
  /// a value of another type or out of its range.
  std::int64_t integer(const char* key, std::int64_t fallback, std::int64_t lowest = 1) const;
  double real(const char* key, double fallback, double lowest = 0) const;
  bool boolean(const char* key, bool fallback) const;
  std::string text(const char* key, const std::string& fallback) const;
  /// An object; empty if the key is missing.
  Configuration part(const char* key) const;
  bool has(const char* key) const;

  /// Throws zs::Error unless the key is missing or has one of the supported `values`.
  void require(const char* key, std::initializer_list<nlohmann::json> values) const;
  /// Throws zs::Error at a key that is not one of `keys`, words with blanks between, unless it is off (null, false or a
  /// text that means none) or begins with _, as transformers' notes for itself do. `what` is the owner of the keys.
  void require_known(std::string_view keys, const std::string& what) const;
  /// The same of a whole config.json of a model of that type: keys that every file may have, and that change no step of
  /// a training, are known.
  void require_known_of_type(std::string_view keys, const std::string& type) const;
  /// Throws zs::Error: where, the key and `why`.
  [[noreturn]] void refuse(const std::string& key, const std::string& why) const;

  const std::string& where() const { return where_; }
  const nlohmann::json& values() const { return *values_; }

 private:
  std::string where_, prefix_;
  std::shared_ptr<const nlohmann::json> values_;
};

}  // namespace zs::model
