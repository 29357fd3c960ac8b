// SPDX-License-Identifier: Apache-2.0
// Tokens one after another, wherever they are kept: read from text, or mapped from a token file.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

namespace zs::data {

class Tokens {
 public:
  virtual ~Tokens() = default;
  virtual std::int64_t count() const = 0;
  /// Puts the tokens from number `first` on into `out`. REQUIRES: they are there.
  virtual void copy(std::int64_t first, std::span<std::int64_t> out) const = 0;
  /// Whether no loss is of some tokens.
  virtual bool masked() const { return false; }
  /// Puts 1 for each token from number `first` on that a loss is of, else 0. REQUIRES: masked(), and they are there.
  virtual void copy_trained(std::int64_t first, std::span<std::uint8_t> out) const {
    (void)first;
    std::ranges::fill(out, 1);
  }
  /// The largest possible token, and one.
  virtual std::int64_t vocabulary() const = 0;
  /// What stands for their numbers: two that are the same in it have the same tokens. SHA-256, or led by another name.
  virtual const std::string& sha256() const = 0;
  /// Where they come from.
  virtual const std::string& path() const = 0;
};

}  // namespace zs::data
