// SPDX-License-Identifier: Apache-2.0
// Reading a sweep.
#include "config/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "config/known.hpp"
#include "config/yaml.hpp"

namespace zs::config {
namespace {

const std::string& scalar(const Pair& pair, const std::string& file) {
  if (!pair.value.IsScalar()) throw Error(file, pair.line, "'" + pair.key + "' needs one value");
  return pair.value.Scalar();
}

double number(const Pair& pair, const std::string& file) {
  const auto value = parse_real(scalar(pair, file));
  if (!value || !std::isfinite(*value))
    throw Error(file, pair.line, pair.key + ": '" + pair.value.Scalar() + "' is not a number");
  return *value;
}

std::int64_t integer(const Pair& pair, const std::string& file, std::int64_t lowest) {
  const auto value = parse_int(scalar(pair, file));
  if (!value || *value < lowest) {
    throw Error(
        file, pair.line,
        pair.key + ": '" + pair.value.Scalar() + "' is not a whole number of at least " + std::to_string(lowest));
  }
  return *value;
}

/// The same text for the same value: 6e-4 and 0.0006 are one number.
std::string identity(const Entry& entry) {
  const auto number = entry.kind == Kind::plain ? parse_real(entry.value) : std::nullopt;
  return std::to_string(static_cast<int>(entry.kind)) + (number ? to_text(*number == 0 ? 0.0 : *number) : entry.value);
}

void add_values(const Pair& pair, const std::string& file, Parameter& parameter) {
  if (!pair.value.IsSequence() || pair.value.size() == 0)
    throw Error(file, pair.line, "'values' of " + parameter.key + " must be a list, [a, b]");
  std::unordered_set<std::string> seen;
  for (const YAML::Node& node : pair.value) {
    const std::int64_t line = line_of(node) > 0 ? line_of(node) : pair.line;
    Entry entry = entry_of_node(parameter.key, file + ":" + std::to_string(line), node);
    if (!seen.insert(identity(entry)).second)
      throw Error(file, line, parameter.key + ": '" + entry.value + "' is given twice: two runs would be the same");
    parameter.values.push_back(std::move(entry));
  }
}

const std::vector<std::string> kParts = {"values", "value", "min", "max", "distribution"};

/// `of_wandb`: a range of whole numbers is one of integers, as W&B takes it.
Parameter parameter_of(const std::string& key, std::int64_t line, const std::vector<Pair>& parts,
                       const std::string& file, bool of_wandb = false) {
  Parameter parameter{key, file + ":" + std::to_string(line), {}, Distribution::uniform, 0, 0};
  const auto whole = [](const Pair& part) {
    return (part.key != "min" && part.key != "max") || (part.value.IsScalar() && parse_int(part.value.Scalar()));
  };
  if (of_wandb && std::ranges::all_of(parts, whole)) parameter.distribution = Distribution::integer;
  bool lowest = false, highest = false, distribution = false, exponents = false;
  for (const Pair& part : parts) {
    if (part.key == "values") {
      add_values(part, file, parameter);
    } else if (part.key == "value") {
      parameter.values = {entry_of_node(key, file + ":" + std::to_string(part.line), part.value)};
    } else if (part.key == "min") {
      parameter.lowest = number(part, file);
      lowest = true;
    } else if (part.key == "max") {
      parameter.highest = number(part, file);
      highest = true;
    } else if (part.key == "distribution") {
      static const std::vector<std::string> kNames = {"uniform", "log_uniform", "int"};
      std::string said = scalar(part, file);
      if (said == "categorical" || said == "constant") continue;  // W&B's words for values, and one value
      if (said == "int_uniform") said = "int";
      exponents = of_wandb && said == "log_uniform";  // W&B's range is from exp(min) to exp(max)
      if (said == "log_uniform_values") said = "log_uniform";
      const auto found = std::ranges::find(kNames, said);
      if (found == kNames.end())
        throw Error(file, part.line,
                    "distribution: '" + part.value.Scalar() + "' is not one of uniform, log_uniform, int" +
                        did_you_mean(part.value.Scalar(), kNames));
      parameter.distribution = static_cast<Distribution>(found - kNames.begin());
      distribution = true;
    } else {
      throw Error(file, part.line, "unknown key '" + part.key + "' of " + key + did_you_mean(part.key, kParts));
    }
  }
  const bool range = lowest || highest || distribution;
  if (range && !parameter.values.empty()) throw Error(file, line, key + " has both values and a range");
  if (!range) return parameter;
  if (!lowest || !highest) throw Error(file, line, key + ": a range needs min and max");
  if (!(parameter.lowest < parameter.highest)) throw Error(file, line, key + ": min must be less than max");
  if (exponents) parameter.lowest = std::exp(parameter.lowest), parameter.highest = std::exp(parameter.highest);
  if (parameter.distribution == Distribution::log_uniform && !(parameter.lowest > 0))
    throw Error(file, line, key + ": min of a log_uniform range must be more than 0");
  if (parameter.distribution == Distribution::integer) {
    for (const double bound : {parameter.lowest, parameter.highest}) {
      if (bound != std::floor(bound) || std::fabs(bound) > 9e15)
        throw Error(file, line, key + ": an int range needs whole numbers");
    }
  }
  return parameter;
}

/// The key that a parameter means: zs-train's option learning_rate is training.learning_rate.
std::string key_of(const std::string& name) {
  const Known* const option = known(name) ? nullptr : known_option(name);
  return option ? std::string(option->key) : name;
}

/// A list is a parameter's values. A mapping is a parameter if it has one of the parts of one, else a section of
/// parameters.
void add_parameters(const YAML::Node& map, const std::string& prefix, const std::string& file, Sweep& sweep,
                    bool of_wandb = false) {
  for (const Pair& pair : pairs(map, file, prefix.empty() ? "parameters" : prefix.substr(0, prefix.size() - 1))) {
    // Another program's keys are as they are.
    const std::string key = sweep.run.empty() ? key_of(prefix + pair.key) : prefix + pair.key;
    if (pair.value.IsSequence()) {
      sweep.parameters.push_back(parameter_of(key, pair.line, {{"values", pair.line, pair.value}}, file));
      continue;
    }
    const std::vector<Pair> parts =
        pairs(pair.value, file, key + " (expected [a, b], {values: [a, b]} or {min: a, max: b})");
    if (parts.size() == 1 && parts.front().key == "parameters") {  // W&B's section
      add_parameters(parts.front().value, prefix + pair.key + ".", file, sweep, of_wandb);
      continue;
    }
    const bool parameter = std::ranges::any_of(
        parts, [](const Pair& part) { return std::ranges::find(kParts, part.key) != kParts.end(); });
    if (parameter)
      sweep.parameters.push_back(parameter_of(key, pair.line, parts, file, of_wandb));
    else if (parts.empty())
      throw Error(file, pair.line, key + " has no values");
    else
      add_parameters(pair.value, prefix + pair.key + ".", file, sweep, of_wandb);
  }
}

/// A key that only W&B's sweeps have. Its program becomes the command; what W&B alone does is named as without effect.
bool take_wandb(const Pair& pair, const std::string& file, Sweep& sweep) {
  static const std::vector<std::string> kIdle = {"metric",          "project", "entity",
                                                 "early_terminate", "program", "command"};
  if (pair.key == "method") {
    const std::string& method = scalar(pair, file);
    if (method != "grid" && method != "random")
      throw Error(file, pair.line,
                  "method: '" + method +
                      "' chooses each run by the results before it, and zs-sweep takes grid and random: set method: "
                      "random and run_cap: N");
    sweep.random = method == "random";
  } else if (pair.key == "run_cap") {
    sweep.num_runs = integer(pair, file, 1);
  } else if (pair.key == "name") {
    sweep.name = scalar(pair, file);
    if (!names_file(sweep.name)) throw Error(file, pair.line, cannot_name(sweep.name, "sweep"));
  } else if (std::ranges::find(kIdle, pair.key) != kIdle.end()) {
    if (pair.key != "program")
      sweep.warnings.push_back(located(file, pair.line, "W&B's '" + pair.key + "' has no effect here"));
  } else {
    return false;
  }
  return true;
}

/// The parameters of a multirun as Hydra records or configures it: "lr=0.1,0.01" among the overrides of its task, or
/// sweeper.params.
void add_hydra(const Pair& hydra, const std::string& file, Sweep& sweep) {
  std::vector<std::pair<std::string, std::string>> swept;
  const auto below = [&](const char* section, const char* key) {
    const YAML::Node found = hydra.value.IsMap() ? hydra.value[section] : YAML::Node();
    return found && found.IsMap() ? found[key] : YAML::Node();
  };
  const YAML::Node params = below("sweeper", "params"), task = below("overrides", "task");
  if (params && params.IsMap()) {
    for (const Pair& pair : pairs(params, file, "sweeper.params")) swept.emplace_back(pair.key, scalar(pair, file));
  }
  for (const YAML::Node& override : (task && task.IsSequence()) ? task : YAML::Node()) {
    const std::string text = override.IsScalar() ? override.Scalar() : "";
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) swept.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  for (auto& [key, values] : swept) {
    key.erase(0, key.find_first_not_of('+'));
    if (values.find_first_of("()[]{}'\"") != std::string::npos)
      throw Error(file, hydra.line,
                  "Hydra's " + key + "=" + values + " is no plain list: write it as parameters: {" + key + ": [a, b]}");
    const YAML::Node list = YAML::Load("[" + values + "]");
    sweep.parameters.push_back(parameter_of(key, hydra.line, {{"values", hydra.line, list}}, file));
  }
  if (swept.empty())
    throw Error(file, hydra.line, "is Hydra's configuration, and has no parameters in hydra.sweeper.params");
}

/// Throws if two parameters are the same, or one changes nothing.
void check_parameters(const Sweep& sweep) {
  std::unordered_map<std::string, const Parameter*> by_key;
  for (const Parameter& parameter : sweep.parameters) {
    const Known* const row = known(parameter.key);
    const std::string key(row ? row->key : parameter.key);
    if (key == "run.name" || key == "sweep_name")
      throw Error(parameter.origin, 0, key + " cannot vary: the sweep itself names its runs");
    if (const std::string what = sweep.run.empty() ? unread(key) : ""; !what.empty())
      throw Error(parameter.origin, 0, "all runs would be the same: " + what);
    const auto [earlier, added] = by_key.emplace(key, &parameter);
    if (!added) {
      throw Error(
          parameter.origin, 0,
          parameter.key + " is given twice, first as " + earlier->second->key + " in " + earlier->second->origin);
    }
  }
}

/// One key of a sweep's file; notes the line of num_runs.
void take_pair(const Pair& pair, const std::string& name, bool of_wandb, Sweep& sweep, std::int64_t& num_runs_line) {
  if (of_wandb && take_wandb(pair, name, sweep)) return;
  if (pair.key == "sweep_name") {
    sweep.name = scalar(pair, name);
    if (!names_file(sweep.name)) throw Error(name, pair.line, cannot_name(sweep.name, "sweep"));
  } else if (pair.key == "strategy") {
    const std::string& strategy = scalar(pair, name);
    if (strategy != "grid" && strategy != "random")
      throw Error(
          name, pair.line,
          "strategy: '" + strategy + "' is not one of grid, random" + did_you_mean(strategy, {"grid", "random"}));
    sweep.random = strategy == "random";
  } else if (pair.key == "num_runs") {
    if (pair.value.IsNull()) return;
    sweep.num_runs = integer(pair, name, 1);
    num_runs_line = pair.line;
  } else if (pair.key == "seed" && !pair.value.IsSequence()) {
    sweep.seed = static_cast<std::uint64_t>(integer(pair, name, 0));
  } else if (pair.key == "parameters") {
    add_parameters(pair.value, "", name, sweep, of_wandb);
  } else if (pair.value.IsSequence()) {  // no key of a sweep takes a list: a top-level parameter
    YAML::Node alone;
    alone[pair.key] = pair.value;
    add_parameters(alone, "", name, sweep);
  } else if (pair.key != "description" && pair.key != "run" && pair.key != "resume") {
    throw Error(name, pair.line,
                "unknown key '" + pair.key + "'" +
                    did_you_mean(pair.key, {"sweep_name", "strategy", "num_runs", "seed", "parameters", "description",
                                            "run", "resume"}));
  }
}

}  // namespace

std::optional<std::uint64_t> Parameter::size() const {
  if (!values.empty()) return values.size();
  if (distribution == Distribution::integer) return static_cast<std::uint64_t>(highest - lowest) + 1;
  return {};
}

Sweep read_sweep(const std::string& path, const std::string& run) {
  Input input(path);
  return parse_sweep(input.read_all(), input.name(), run);
}

Sweep parse_sweep(std::string_view yaml, const std::string& name, const std::string& run) {
  Sweep sweep;
  std::int64_t num_runs_line = 0;
  const std::vector<Pair> entries = pairs(document(yaml, name), name, "a sweep");
  for (const Pair& pair : entries) {
    if (pair.key == "run") sweep.run = scalar(pair, name);
    if (pair.key == "resume") sweep.resume = scalar(pair, name);
  }
  const auto with = [&](const char* key) {
    return std::ranges::find_if(entries, [&](const Pair& pair) { return pair.key == key; });
  };
  const bool of_wandb = with("method") != entries.end();
  if (of_wandb && sweep.run.empty() && with("program") != entries.end())
    sweep.run = "python3 " + scalar(*with("program"), name) + " {options}";
  if (const auto hydra = with("hydra"); hydra != entries.end()) {  // the other keys are the task's own
    if (sweep.run.empty() && run.empty())
      throw Error(name, hydra->line, "is of Hydra, whose task zs-sweep does not know: name its command with --run");
    if (!run.empty()) sweep.run = run;
    add_hydra(*hydra, name, sweep);
  }
  if (!run.empty()) sweep.run = run;
  if (with("hydra") == entries.end()) {
    for (const Pair& pair : entries) take_pair(pair, name, of_wandb, sweep, num_runs_line);
  }
  if (sweep.name.empty()) {
    const std::string file = std::filesystem::path(name).stem().string();
    sweep.name = names_file(file) && name != "stdin" ? file : "sweep";
  }
  if (sweep.parameters.empty()) throw Error(name, 0, "has no parameters");
  check_parameters(sweep);
  if (sweep.random && sweep.num_runs == 0)
    throw Error(name, 0, std::string("a random sweep needs ") + (of_wandb ? "run_cap" : "num_runs"));
  const auto most = sweep.random ? sweep.combinations() : std::nullopt;
  if (most && static_cast<std::uint64_t>(sweep.num_runs) > *most) {
    sweep.warnings.push_back(located(name, num_runs_line,
                                     "num_runs is " + std::to_string(sweep.num_runs) + ", the parameters have only " +
                                         std::to_string(*most) + " combinations: all of them are taken"));
    sweep.num_runs = static_cast<std::int64_t>(*most);
  }
  if (!sweep.random && sweep.num_runs > 0)
    sweep.warnings.push_back(located(name, num_runs_line, "num_runs is not used: a grid takes every combination"));
  return sweep;
}

}  // namespace zs::config
