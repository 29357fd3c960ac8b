// SPDX-License-Identifier: Apache-2.0
// Settings that imply others: the method and the backend.
#include <array>

#include "base/error.hpp"
#include "config/deepspeed.hpp"
#include "config/known.hpp"

namespace zs::config {

void agree(Config& config, Entry entry, const std::string& said) {
  const Known& row = *known(entry.key);
  if (const Entry* const other = config.find(entry.key)) {
    if (same_form(row, other->value) == same_form(row, entry.value)) return;
    throw Error(said + " says " + entry.value + ", and " + other->origin + " says " + std::string(row.key) + " is " +
                other->value + ": leave one of them out");
  }
  config.set(std::move(entry));
}

namespace {

/// Further settings that the value of a setting implies.
struct Meaning {
  std::string_view key, value;
  std::array<std::pair<std::string_view, std::string_view>, 4> settings;
};
constexpr auto kMeanings = std::to_array<Meaning>({
    {"zero.method", "ddp", {{{"zero.backend", "ddp"}}}},
    {"zero.method", "single", {{{"zero.backend", "single"}}}},
    {"zero.method", "single_gpu_simple", {{{"zero.backend", "single"}}}},
    {"zero.method", "zero1", {{{"zero.backend", "zero"}, {"zero.stage", "1"}}}},
    {"zero.method", "zero2", {{{"zero.backend", "zero"}, {"zero.stage", "2"}}}},
    {"zero.method", "zero3", {{{"zero.backend", "zero"}, {"zero.stage", "3"}}}},
    {"zero.method",
     "zeropp",
     {{{"zero.backend", "zero"},
       {"zero.stage", "3"},
       {"zero.quantized_weights", "true"},
       {"zero.quantized_gradients", "true"}}}},
    {"zero.method", "single_gpu_offload", {{{"zero.stage", "2"}, {"zero.offload_device", "cpu"}}}},
    {"zero.backend", "ddp", {{{"zero.stage", "0"}}}},
    {"zero.backend", "fsdp", {{{"zero.stage", "3"}}}},
    {"zero.backend", "single", {{{"zero.stage", "0"}}}},
    {"zero.backend", "singlegpu", {{{"zero.stage", "0"}}}},
});

bool typed(const Entry& entry) { return entry.origin.starts_with("--"); }

/// Sets what `key` implies; `noun` is its name for people.
void add_meaning(Config& config, const std::string& key, const std::string& noun) {
  const Entry* const found = config.find(key);
  if (!found) return;
  const Entry given = *found;
  config.text(key);                                                // one of the choices
  if (key == "zero.method" && given.from == From::stored) return;  // its implications are stored, too
  for (const Meaning& row : kMeanings) {
    if (row.key != key || row.value != given.value) continue;
    for (const auto& [meant, value] : row.settings) {
      if (meant.empty()) continue;
      const Entry* const other = config.find(meant);
      Entry entry{std::string(meant), std::string(value), given.origin, Kind::plain, given.from};
      if (other && (other->from == From::stored || typed(given)) && !typed(*other))
        config.set(std::move(entry));
      else
        agree(config, std::move(entry), given.origin + ": the " + noun + " " + given.value);
    }
  }
}

}  // namespace

void add_method(Config& config) {
  add_meaning(config, "zero.method", "method");
  add_meaning(config, "zero.backend", "backend");
}

}  // namespace zs::config
