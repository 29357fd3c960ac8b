// SPDX-License-Identifier: Apache-2.0
// The model, the data, the machine, and the differences between conditions: all from run attributes.
#include <algorithm>

#include "base/number.hpp"
#include "report/batch.hpp"
#include "stat/steps.hpp"
#include "summary/difference.hpp"

namespace zs::report {
namespace {

constexpr std::size_t kMostDiffering = 8;  // columns that a page has room for

/// value of a key -> what the conditions say, "" for silence.
std::vector<std::string> values_of(const std::vector<Condition>& conditions, const std::string& key) {
  std::vector<std::string> said;
  for (const Condition& condition : conditions) said.push_back(condition.attribute(key));
  return said;
}

bool any(const std::vector<std::string>& values) {
  return std::ranges::any_of(values, [](const std::string& value) { return !value.empty(); });
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
    for (const summary::Member& member : condition.members) {
      const metric::Column* const epochs = member.run->records.find("epoch");
      if (!epochs || epochs->type() != metric::Type::integer) continue;
      for (const std::int64_t epoch : epochs->integers()) largest = std::max(largest, epoch);
    }
  }
  return largest == metric::kAbsentInteger ? "" : to_text(largest);
}

std::string product_of(const std::vector<Condition>& conditions, const std::vector<const char*>& keys) {
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

/// A step's batch times `more`: as it is said, since ranks may have unlike shares of it, else from its factors.
std::string of_a_step(const std::vector<Condition>& conditions, const std::vector<const char*>& more = {}) {
  for (std::vector<const char*> keys :
       {std::vector<const char*>{"global_batch_size"}, {"world_size", "batch_size", "gradient_accumulation_steps"}}) {
    keys.insert(keys.end(), more.begin(), more.end());
    if (const std::string text = product_of(conditions, keys); !text.empty()) return text;
  }
  return "";
}

/// "python 3.11.7, torch 2.11.0, deepspeed 0.19.8": versions on which all conditions agree.
std::string versions(const std::vector<Condition>& conditions) {
  constexpr std::string_view kPackage = "package.";
  std::string text;
  if (conditions.empty() || conditions[0].members.empty()) return text;
  for (const auto& [key, value] : conditions[0].members[0].facts) {
    const bool package = key.starts_with(kPackage);
    if (!package && key != "python" && key != "torch" && key != "cuda") continue;
    if (std::string agreed; !value.empty() && common(values_of(conditions, key), agreed))
      text += (text.empty() ? "" : ", ") + (package ? key.substr(kPackage.size()) : key) + " " + value;
  }
  return text;
}

/// Adds a row of what and value, if there is a value.
void add_row(Grid& grid, const std::string& label, const std::string& value) {
  if (!value.empty()) grid.rows.push_back({{Text(label)}, {Text(value)}});
}

/// Adds a row for each main attribute that the conditions share; returns the keys in which they differ.
std::vector<std::string> add_attributes(const std::vector<Condition>& conditions, Grid& grid) {
  std::vector<std::string> differing;
  for (const attribute::Attribute* const known : attribute::filtered([](const auto& one) { return one.main; })) {
    const std::string key(known->name);
    const auto said = values_of(conditions, key);
    if (!any(said)) continue;
    std::string value;
    const bool everywhere = std::ranges::none_of(said, [](const std::string& one) { return one.empty(); });
    const bool failed_only = std::ranges::all_of(
        conditions, [&](const Condition& c) { return c.bad() || c.count("points") == 0 || !c.attribute(key).empty(); });
    const bool is_name =
        std::ranges::all_of(conditions, [&](const Condition& c) { return c.name == c.attribute(key); });
    if (common(said, value) && (everywhere || failed_only))
      add_row(grid, titled(*known), value);
    else if (!is_name)
      differing.push_back(key);
  }
  return differing;
}

/// Adds what follows from attributes and records: the size of a step, versions, epochs.
void add_facts(const std::vector<Condition>& conditions, Grid& grid) {
  const bool images = summary::on_images(conditions);
  const std::string batch = of_a_step(conditions);
  if (!batch.empty())
    add_row(grid, "global batch (ranks x micro-batch x accumulation)", batch + (images ? " images" : " sequences"));
  // A trainer may number its micro-steps: then the step of its log has the tokens of one.
  const bool micro = std::ranges::any_of(conditions, [](const Condition& condition) {
    return std::ranges::any_of(condition.members, [](const summary::Member& member) {
      return stat::counts_micro_steps(*member.run, member.series());
    });
  });
  if (!images)
    add_row(grid, micro ? "tokens of a logged step (a micro-step)" : "tokens of a step",
            micro ? product_of(conditions, {"world_size", "batch_size", "seq_length"})
                  : of_a_step(conditions, {"seq_length"}));
  add_row(grid, "versions", versions(conditions));
  add_row(grid, "last epoch reached", epochs_seen(conditions));
}

/// Other set or unknown attributes that differ are also shown with the conditions.
void add_parameters(const std::vector<Condition>& conditions, std::vector<std::string>& differing) {
  for (const std::string& key : summary::parameters(conditions)) {
    std::string value;
    // A log may be silent about a fact; an option of the user's own program was not given.
    const bool silent = attribute::find(key) && common(values_of(conditions, key), value);
    // An option has a second name where it is an argument of the command.
    const std::string_view plain = std::string_view(key).substr(key.starts_with("arguments.") ? 10 : 0);
    if (!silent && std::ranges::find(differing, plain) == differing.end() && differing.size() < kMostDiffering)
      differing.push_back(key);
  }
}

Grid differences_of(const std::vector<Condition>& conditions, const std::vector<std::string>& differing) {
  Grid grid{"What differs between the conditions", {"condition"}, {false}, {}};
  for (const std::string& key : differing) {
    const attribute::Attribute* const known = attribute::find(key);
    grid.header.push_back(known ? titled(*known) : key);
  }
  grid.numeric.resize(grid.header.size(), false);
  for (const Condition& condition : conditions) {
    std::vector<Cell> cells = {{Text(code(condition.name))}};
    for (const std::string& key : differing) cells.push_back({Text(condition.attribute(key))});
    grid.rows.push_back(std::move(cells));
  }
  return grid;
}

/// What no run says anything about.
std::vector<Text> missing_facts(const std::vector<Condition>& conditions) {
  struct Fact {
    std::vector<const char*> keys;
    const char* label;
  };
  static const std::vector<Fact> kFacts = {{{"model.name"}, "the model"},
                                           {{"dataset"}, "the data"},
                                           {{"dtype"}, "the number format"},
                                           {{"world_size"}, "the number of ranks"},
                                           {{"batch_size"}, "the batch size"},
                                           {{"seed"}, "the seed"},
                                           {{"expected_steps"}, "how many steps were expected"},
                                           {{"cpu", "gpu", "host"}, "the hardware"},
                                           {{"revision"}, "the revision of the code"}};
  std::vector<Text> missing;
  for (const Fact& fact : kFacts) {
    const auto has = [&](const summary::Member& run) {
      return std::ranges::any_of(fact.keys, [&](const char* key) { return run.facts.contains(key); });
    };
    if (std::ranges::none_of(conditions, [&](const Condition& c) { return std::ranges::any_of(c.members, has); }))
      missing.emplace_back(fact.label);
  }
  return missing;
}

}  // namespace

Section setup_section(const Findings& found, bool differences) {
  Section section{"Setup", {}};
  Grid grid{"", {"what", "value"}, {false, false}, {}, true};
  std::vector<std::string> differing = add_attributes(found.conditions, grid);
  add_facts(found.conditions, grid);
  add_parameters(found.conditions, differing);
  if (differences && !differing.empty() && found.conditions.size() > 1)
    section.blocks.emplace_back(differences_of(found.conditions, differing));
  grid.title = (found.conditions.size() > 1 ? "What all conditions share" : "Settings") + std::string(" (") +
               std::to_string(grid.rows.size()) + ")";
  if (!grid.rows.empty()) section.blocks.emplace_back(std::move(grid));
  const std::vector<Text> missing = missing_facts(found.conditions);
  if (!missing.empty()) section.blocks.emplace_back(Paragraph{say("The records do not say: {}.", joined(missing))});
  return section;
}

}  // namespace zs::report
