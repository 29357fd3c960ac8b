// SPDX-License-Identifier: Apache-2.0
// The known keys of an experiment configuration: name, type, default, range, help. The one table that zs-train's
// options, the checker and the documentation share.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zs::config {

enum class Type {
  text,
  integer,
  real,
  boolean,
  count,  ///< a whole number, "10M" and "64k" allowed
  list,   ///< words: "a,b", or a YAML list
};

struct Known {
  std::string_view key;      ///< "training.batch_size"
  std::string_view options;  ///< zs-train's options for it, "max_steps bench_step"; the first is the one shown
  Type type = Type::text;
  std::string_view value;      ///< placeholder, "N"; a boolean without one is a flag, which means true
  std::string_view fallback;   ///< default; "" for none
  std::string_view help;       ///< lower case, no period
  std::string_view choices{};  ///< the only values allowed, "zero fsdp ddp"; "" for any
  double lowest = std::numeric_limits<double>::lowest();
  double highest = std::numeric_limits<double>::max();
  std::string_view aliases{};  ///< other keys that mean the same, "model.seq_length training.seq_length"
};

/// All known keys, by section.
std::span<const Known> known();

/// The row of a key, of one of its aliases, or nothing.
const Known* known(std::string_view key);
/// The row of one of zs-train's options, or nothing.
const Known* known_option(std::string_view option);

/// What people call a key in other trainers, "lr": words that mean nothing here, for "did you mean".
std::string_view synonyms(std::string_view key);

/// The blank-separated words of a field of the table.
std::vector<std::string> words(std::string_view field);

/// "10M" = 10000000, "64k" = 64000, "1.5G", "512": a count of at least 0, or nothing. Powers of 1000.
std::optional<std::int64_t> parse_count(std::string_view text);

}  // namespace zs::config
