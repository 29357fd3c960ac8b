// SPDX-License-Identifier: Apache-2.0
// A sequence of tokens from any source: read from text, or mapped from a token file.
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
  /// Copies the tokens from number `first` on to `out`. REQUIRES: they exist.
  virtual void copy(std::int64_t first, std::span<std::int64_t> out) const = 0;
  /// Whether marks define which tokens the loss counts, and where conversations begin.
  virtual bool marked() const { return false; }
  /// Copies the marks of tokens from number `first` on to `out`. REQUIRES: marked(), and they exist.
  virtual void copy_marks(std::int64_t first, std::span<token::Mark> out) const {
    (void)first;
    std::ranges::fill(out, token::kTrained);
  }
  /// The largest possible token plus one.
  virtual std::int64_t vocabulary() const = 0;
  /// Identifies the tokens: equal values mean equal tokens. SHA-256, or prefixed with another algorithm's name.
  virtual const std::string& sha256() const = 0;
  /// The source of the tokens.
  virtual const std::string& path() const = 0;
};

}  // namespace zs::data
