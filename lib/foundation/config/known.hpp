// SPDX-License-Identifier: Apache-2.0
// Look-ups in the table of settings (setting.hpp): by key, by option and by the names of other programs.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/setting.hpp"

namespace zs::config {

/// All known keys, by section.
std::span<const Known> known();

/// The row of a key or of one of its aliases; null if unknown.
const Known* known(std::string_view key);
/// The row of an option of zs-train; null if unknown.
const Known* known_option(std::string_view option);

/// The blank-separated words of a field of the table.
std::vector<std::string> words(std::string_view field);

/// The value of a setting in one spelling, to compare values: True, yes and 1; 1e-3 and 0.001; torch.float16.
std::string same_form(const Known& row, const std::string& value);

/// "10M" = 10000000, "64k" = 64000, "1.5G", "512": a count of at least 0, or nothing. Powers of 1000.
std::optional<std::int64_t> parse_count(std::string_view text);

}  // namespace zs::config
