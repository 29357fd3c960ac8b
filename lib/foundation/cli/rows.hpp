// SPDX-License-Identifier: Apache-2.0
// Rows of an option table that share a heading.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "cli/command.hpp"

namespace zs::cli {

/// Rows running(options, "Running"); running("timeout", "SECONDS", "how long ...", "50");
class Rows {
 public:
  Rows(std::vector<Option>& options, std::string group) : options_(options), group_(std::move(group)) {}

  /// Adds a row and returns it, to set rare fields (its letter, `many`).
  Option& operator()(std::string name, std::string value, std::string help, std::string fallback = "",
                     std::vector<std::string> choices = {}) {
    options_.push_back({.name = std::move(name),
                        .value = std::move(value),
                        .help = std::move(help),
                        .fallback = std::move(fallback),
                        .choices = std::move(choices),
                        .group = group_});
    return options_.back();
  }

 private:
  std::vector<Option>& options_;
  std::string group_;
};

}  // namespace zs::cli
