// SPDX-License-Identifier: Apache-2.0
// Tokens one after another, wherever they are kept: read from text, or mapped from a token file.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "token/marks.hpp"

namespace zs::data {

class Tokens {
 public:
  virtual ~Tokens() = default;
  virtual std::int64_t count() const = 0;
  /// Puts the tokens from number `first` on into `out`. REQUIRES: they are there.
  virtual void copy(std::int64_t first, std::span<std::int64_t> out) const = 0;
  /// Whether marks say of which tokens a loss is, and where conversations begin.
  virtual bool marked() const { return false; }
  /// Puts the marks of tokens from number `first` on into `out`. REQUIRES: marked(), and they are there.
  virtual void copy_marks(std::int64_t first, std::span<token::Mark> out) const {
    (void)first;
    std::ranges::fill(out, token::kTrained);
  }
  /// The largest possible token, and one.
  virtual std::int64_t vocabulary() const = 0;
  /// What stands for their numbers: two that are the same in it have the same tokens. SHA-256, or led by another name.
  virtual const std::string& sha256() const = 0;
  /// Where they come from.
  virtual const std::string& path() const = 0;
};

}  // namespace zs::data
