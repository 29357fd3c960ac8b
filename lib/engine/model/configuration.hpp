// SPDX-License-Identifier: Apache-2.0
// A model's config.json, as Hugging Face's classes write it: values by key, each asked for with what it may be.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace zs::model {

class Configuration {
 public:
  /// `where` leads in errors: the path of the file, or the model's name.
  Configuration(std::string where, const nlohmann::json& values);
  /// A file. Throws zs::Error, located, where it is no JSON object.
  static Configuration read(const std::string& path);

  /// A key that is not there, or null, has its fallback, as in Hugging Face's classes. Each throws zs::Error, naming
  /// file and key, at a value of another kind or out of its range.
  std::int64_t integer(const char* key, std::int64_t fallback, std::int64_t lowest = 1) const;
  double real(const char* key, double fallback, double lowest = 0) const;
  bool boolean(const char* key, bool fallback) const;
  std::string text(const char* key, const std::string& fallback) const;
  /// An object; empty where the key is not there.
  Configuration part(const char* key) const;
  bool has(const char* key) const;

  /// Throws zs::Error unless the key is not there or has one of the `values` that zs knows.
  void require(const char* key, std::initializer_list<nlohmann::json> values) const;
  /// Throws zs::Error at a key that is not one of `keys`, unless it is off: null, false or a text of none. `what` has
  /// them.
  void require_known(std::span<const std::string_view> keys, const std::string& what) const;
  void require_known(std::initializer_list<std::string_view> keys, const std::string& what) const {
    require_known(std::span(keys.begin(), keys.size()), what);
  }
  /// Throws zs::Error: where, the key and `why`.
  [[noreturn]] void refuse(const std::string& key, const std::string& why) const;

  const std::string& where() const { return where_; }
  const nlohmann::json& values() const { return *values_; }

 private:
  std::string where_, prefix_;
  std::shared_ptr<const nlohmann::json> values_;
};

}  // namespace zs::model
