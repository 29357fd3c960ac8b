// SPDX-License-Identifier: Apache-2.0
// The dialect that a user describes by a regular expression.
#pragma once
#include <memory>
#include <string>

#include "parse/dialect.hpp"

namespace zs::parse {

/// A reader of every line that has a match (RE2 syntax; groups (?P<key>...) or (?<key>...)); each match is a record.
/// Throws UsageError where the expression is wrong or has no named group.
std::unique_ptr<Dialect> make_pattern(const std::string& pattern);

}  // namespace zs::parse
