// SPDX-License-Identifier: Apache-2.0
// Typed access to a configuration (types from setting.hpp) that records what was read. A value that the user gave and
// nothing read has no effect; zs refuses it and names what would give it one. So code reads a setting only where it has
// an effect (--profile_dir where steps are profiled).
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "config/config.hpp"
#include "config/setting.hpp"

namespace zs::config {

/// The place of a setting: "train.yaml:11: training.max_gpu_batch_size".
std::string place_of(const Entry& entry);
/// Throws Error at a setting: "train.yaml:11: zero.stage is 4, and `why`".
[[noreturn]] void refuse(const Entry& entry, const std::string& why);

class Reading {
 public:
  /// `config` must outlive it.
  Reading(const Config& config) : config_(&config) {}  // implicit on purpose

  /// The value of a setting; without a default an optional, or an empty list. Marks it as read. Throws Error, located,
  /// as Config does.
  template <Key key>
  auto operator[](Setting<key> which) const {
    constexpr const Known& row = Setting<key>::row;
    settle(which);
    if constexpr (row.type == Type::list || !row.fallback.empty())
      return value<row.type>(row.key);
    else
      return config_->has(row.key) ? std::optional(value<row.type>(row.key)) : std::nullopt;
  }

  /// The entry of a setting, for messages and its origin; null if not set. Does not mark it as read.
  template <Key key>
  const Entry* entry(Setting<key>) const {
    return config_->find(Setting<key>::row.key);
  }
  /// Whether the user or the resumed run set it: not a default.
  template <Key key>
  bool given(Setting<key> which) const {
    const Entry* const found = entry(which);
    return found && found->from != From::zs;
  }
  /// Marks a setting as read although its value is not used: another setting overrides it, and the log says so.
  template <Key key>
  void settle(Setting<key>) const {
    read_.insert(Setting<key>::row.key);
  }

  const Config& config() const { return *config_; }

  /// Entries that the user gave and nothing has read, in the order of the configuration; without values equal to the
  /// default and without keys that are only recorded (run.name, the user's private keys).
  std::vector<const Entry*> unread() const;
  /// Throws Error, located, at the first of unread() that `counts` accepts: "... has no effect without --profile".
  template <typename Counts>
  void require_read(Counts counts) const {
    for (const Entry* const entry : unread()) {
      if (counts(*entry)) throw Error(without_effect(*entry));
    }
  }
  void require_read() const {
    require_read([](const Entry&) { return true; });
  }

 private:
  const Config* config_;
  mutable std::set<std::string_view> read_;

  template <Type type>
  auto value(std::string_view key) const {
    if constexpr (type == Type::list)
      return config_->list(key);
    else if constexpr (type == Type::boolean)
      return config_->boolean(key);
    else if constexpr (type == Type::real)
      return config_->real(key);
    else if constexpr (type == Type::integer || type == Type::count)
      return config_->integer(key);
    else
      return config_->text(key);
  }
  static std::string without_effect(const Entry& entry);
};

/// The option that sets this value: "--dtype bfloat16", "--compile", "--set zero.compile=false".
std::string as_option(const Known& row, std::string_view value);

/// Throws Error, as Reading::require_read() does, for a given setting that has no effect according to the table alone
/// (Known::needs): for tools that plan a training.
void require_effect(const Config& config);

}  // namespace zs::config
