// SPDX-License-Identifier: Apache-2.0
// What was trained, on what, and in what the conditions differ: all from run attributes.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/number.hpp"
#include "plot/figures.hpp"
#include "report/batch.hpp"

namespace zs::report {
namespace {

struct Known {
  const char *key, *label;
};
/// The attributes that a reader looks for, in this order.
constexpr std::array<Known, 29> kKnown = {{{"model.name", "model"},
                                           {"model.parameters", "parameters"},
                                           {"num_layers", "layers asked (0: those of the model)"},
                                           {"dataset", "data"},
                                           {"dataset_tokens", "tokens of the data"},
                                           {"dataset_percentage", "share of the data (%)"},
                                           {"dtype", "number format"},
                                           {"backend", "backend"},
                                           {"zero_stage", "ZeRO stage"},
                                           {"world_size", "ranks"},
                                           {"batch_size", "micro-batch of a rank"},
                                           {"gradient_accumulation_steps", "accumulation steps"},
                                           {"seq_length", "sequence length"},
                                           {"num_epochs", "epochs asked"},
                                           {"expected_steps", "steps expected"},
                                           {"learning_rate", "learning rate"},
                                           {"max_grad_norm", "gradient norm limit"},
                                           {"seed", "seed"},
                                           {"compile", "compile"},
                                           {"deepcompile", "deepcompile"},
                                           {"passes", "passes"},
                                           {"activation_checkpointing", "activation checkpointing"},
                                           {"offload", "offload"},
                                           {"revision", "revision"},
                                           {"host", "host"},
                                           {"cpu", "processor"},
                                           {"gpu", "accelerator"},
                                           {"threads", "threads of a rank"},
                                           {"experiment_date", "date"}}};

/// value of a key -> what the conditions say, "" for silence.
std::vector<std::string> values(const std::vector<Condition>& conditions, const std::string& key) {
  std::vector<std::string> all;
  for (const Condition& condition : conditions) all.push_back(condition.attribute(key));
  return all;
}

bool any(const std::vector<std::string>& values) {
  return std::any_of(values.begin(), values.end(), [](const std::string& value) { return !value.empty(); });
}
/// All that say something say the same.
bool common(const std::vector<std::string>& values, std::string& value) {
  for (const std::string& one : values) {
    if (one.empty()) continue;
    if (!value.empty() && one != value) return false;
    value = one;
  }
  return true;
}

/// The largest epoch that any record names, or "".
std::string epochs_seen(const std::vector<Condition>& conditions) {
  std::int64_t largest = metric::kAbsentInteger;
  for (const Condition& condition : conditions) {
    for (const auto& [run, series, judgement, timing] : condition.members) {
      const metric::Column* const epochs = run->records.find("epoch");
      if (!epochs || epochs->type() != metric::Type::integer) continue;
      for (const std::int64_t epoch : epochs->integers()) largest = std::max(largest, epoch);
    }
  }
  return largest == metric::kAbsentInteger ? "" : to_text(largest);
}

std::string product(const std::vector<Condition>& conditions, const std::vector<const char*>& keys) {
  std::string text;
  for (const Condition& condition : conditions) {
    std::int64_t value = 1;
    for (const char* const key : keys) {
      const auto factor = parse_int(condition.attribute(key));
      if (!factor || __builtin_mul_overflow(value, *factor, &value)) return "";
    }
    const std::string one = to_text(value);
    if (!text.empty() && text != one) return "";
    text = one;
  }
  return text;
}

}  // namespace

Section setup_section(const Findings& found, bool differences) {
  Section section{"Setup", {}};
  Grid table{"", {"what", "value"}, {false, false}, {}};
  std::vector<Known> differing;
  const auto row = [&](const std::string& label, const std::string& value) {
    table.rows.push_back({{Text(label)}, {Text(value)}});
  };
  std::set<std::string> seen;
  for (const Known& known : kKnown) {
    seen.insert(known.key);
    const auto said = values(found.conditions, known.key);
    if (!any(said)) continue;
    std::string value;
    const bool everywhere = std::none_of(said.begin(), said.end(), [](const std::string& one) { return one.empty(); });
    const bool failed_only = std::all_of(found.conditions.begin(), found.conditions.end(), [&](const Condition& c) {
      return c.bad() || c.points.value_or(0) == 0 || !c.attribute(known.key).empty();
    });
    const bool is_name = std::all_of(found.conditions.begin(), found.conditions.end(),
                                     [&](const Condition& c) { return c.name == c.attribute(known.key); });
    if (common(said, value) && (everywhere || failed_only))
      row(known.label, value);
    else if (!is_name)
      differing.push_back(known);
  }
  const std::string batch = product(found.conditions, {"world_size", "batch_size", "gradient_accumulation_steps"});
  if (!batch.empty()) row("global batch (ranks x micro-batch x accumulation)", batch + " sequences");
  const std::string tokens =
      product(found.conditions, {"world_size", "batch_size", "gradient_accumulation_steps", "seq_length"});
  if (!tokens.empty()) row("tokens of a step", tokens);
  const std::string epochs = epochs_seen(found.conditions);
  if (!epochs.empty()) row("last epoch reached", epochs);
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));

  // Attributes beyond the known ones: those that differ belong beside the conditions.
  std::vector<std::string> extra;
  for (const std::string& key : plot::differing_attributes(found.conditions)) {
    std::string value;
    if (seen.count(key) == 0 && !common(values(found.conditions, key), value)) extra.push_back(key);
  }
  if (differences && (!differing.empty() || !extra.empty()) && found.conditions.size() > 1) {
    Grid grid{"What differs between the conditions", {"condition"}, {false}, {}};
    std::vector<std::string> keys;
    for (const Known& known : differing) keys.emplace_back(known.key), grid.header.emplace_back(known.label);
    for (const std::string& key : extra) {
      if (keys.size() < 8) keys.push_back(key), grid.header.push_back(key);
    }
    grid.numeric.resize(grid.header.size(), false);
    for (const Condition& condition : found.conditions) {
      std::vector<Cell> cells = {{Text(code(condition.name))}};
      for (const std::string& key : keys) cells.push_back({Text(condition.attribute(key))});
      grid.rows.push_back(std::move(cells));
    }
    section.blocks.emplace_back(std::move(grid));
  }

  std::vector<std::string> missing;
  const auto silent = [&](std::initializer_list<const char*> keys, const char* label) {
    if (std::none_of(keys.begin(), keys.end(), [&](const char* key) { return any(values(found.conditions, key)); }))
      missing.emplace_back(label);
  };
  silent({"model.name"}, "the model");
  silent({"dataset"}, "the data");
  silent({"dtype"}, "the number format");
  silent({"world_size"}, "the number of ranks");
  silent({"batch_size"}, "the batch size");
  silent({"seed"}, "the seed");
  silent({"expected_steps"}, "how many steps were expected");
  silent({"cpu", "gpu", "host"}, "the hardware");
  silent({"revision"}, "the revision of the code");
  if (!missing.empty())
    section.blocks.emplace_back(Paragraph{Text("The records do not say: " + joined(missing) + ".")});
  return section;
}

}  // namespace zs::report
