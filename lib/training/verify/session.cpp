// SPDX-License-Identifier: Apache-2.0
#include "verify/session.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/host.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "cli/progress.hpp"
#include "compare/records.hpp"
#include "config/known.hpp"
#include "config/reading.hpp"
#include "experiment/command.hpp"
#include "metric/file.hpp"
#include "metric/unit.hpp"
#include "parse/custom.hpp"
#include "registry/run.hpp"
#include "setup/agreement.hpp"
#include "setup/describe.hpp"
#include "setup/memory.hpp"
#include "verify/operand.hpp"
#include "verify/repeat.hpp"
#include "verify/report.hpp"
#include "verify/two_runs.hpp"

namespace zs::verify {
namespace {

/// Whether a comparison uses a key of the configuration: it does not write, evaluate or name anything, trains for so
/// many steps as --iterations says, and begins from initial weights.
bool used(std::string_view key) {
  const attribute::Attribute* const row = attribute::find(key);
  return !row || !(row->role == attribute::Role::identity || row->watches || row->through == "expected_steps" ||
                   row->name == "checkpoint");
}

/// What a small model needs to be compared in seconds.
struct Default {
  const char *key, *value;
};
constexpr std::array kDefaults = {Default{"model.name", "tiny"}, Default{"model.context_length", "32"},
                                  Default{"training.max_steps", "10"}};

void print(const std::string& text) {
  Output out("-");
  out.write(text);
  out.commit();
}

config::Config configuration(const cli::Args& args) {
  config::Config config = experiment::configuration(args);
  for (const Default& known : kDefaults) {
    const config::Entry* const entry = config.find(known.key);
    // Images have the length that their size gives.
    if (known.key == std::string("model.context_length") && model::takes_images(config.text("model.name"))) continue;
    const bool once = args.has("repeat") && known.key == std::string("training.max_steps");
    if (!entry || entry->from == config::From::zs) config.choose(known.key, once ? "1" : known.value);
  }
  if (args.has("iterations"))
    config.set("training.max_steps", zs::to_text(args.integer("iterations", 1)), "--iterations");
  config.check();
  if (config.integer("training.max_steps") == 0) throw Error("training.max_steps is 0: no step would be compared");
  return config;
}

Tolerance tolerance(const cli::Args& args, at::ScalarType dtype, bool across = false) {
  Tolerance tolerance;
  if (across) tolerance = {0.05, dtype == at::kHalf ? 0x1p-24 : 0};  // float16's smallest step
  constexpr double kMost = std::numeric_limits<double>::max();
  if (args.has("rtol")) tolerance.rtol = args.real("rtol", 0, kMost);
  if (args.has("atol")) tolerance.atol = args.real("atol", 0, kMost);
  return tolerance;
}

attribute::Facts attributes(const config::Config& config, const setup::Settings& s, const cli::Args& args,
                            const comm::Group& group, const Tolerance& tolerance) {
  attribute::Facts settings = setup::configured(config);
  std::erase_if(settings, [](const auto& fact) { return !used(fact.first); });
  attribute::Facts facts = {{"command", args.line()},
                            {"revision", cli::version()},
                            {"world_size", zs::to_text(std::int64_t{group.size()})},
                            {"gradient_accumulation_steps", zs::to_text(std::int64_t{s.micro_steps})},
                            {"batch_size", zs::to_text(std::int64_t{s.batch_size})},
                            {"seq_length", zs::to_text(static_cast<std::int64_t>(s.model.seq_length))},
                            {"passes", plan::to_text(s.passes)},
                            {"kernels", s.model.fused ? "fused" : "plain"},
                            {"rtol", zs::to_text(tolerance.rtol)},
                            {"atol", zs::to_text(tolerance.atol)}};
  facts.merge(setup::arithmetic(group.device(), s));
  facts.merge(settings);
  return facts;
}

/// The columns that --columns names. Throws UsageError at one that is never compared.
std::vector<std::string> columns(const cli::Args& args) {
  std::vector<std::string> names;
  std::istringstream words(args.text("columns"));
  for (std::string word; std::getline(words, word, ',');) names.push_back(word);
  const std::vector<std::string>& known = compare::decided();
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UsageError("--columns: '" + name + "' is none of the columns that training decides" +
                       did_you_mean(name, known));
  }
  return names;
}

/// The step at which two begin to differ, of their answer; 0 where it tells none.
std::int64_t step_of(const Answer& answer) {
  for (const auto& [key, value] : answer.lines) {
    if (key == "step") return parse_int(value).value_or(0);
  }
  return 0;
}

/// The first operand beside each of the others. Of several it returns the one that differs first, with a word of each.
Answer compare_with_first(const std::vector<Operand>& operands, const Tolerance& allowed,
                          const std::vector<std::string>& columns) {
  const Operand& a = operands.front();
  std::optional<Answer> worst;
  std::string against, words;
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const Operand& b = operands[i];
    Answer answer = a.is_run
                        ? compare_runs(read_recorded(a.path, a.name), read_recorded(b.path, b.name), allowed, columns)
                        : compare_files(a.path, b.path, allowed);
    words += (words.empty() ? "" : "; ") + b.name + " " + std::string(compare::name(answer.verdict));
    const bool worse = !worst || answer.verdict > worst->verdict;
    if (worse || (answer.verdict == worst->verdict && step_of(answer) < step_of(*worst)))
      worst = std::move(answer), against = b.name;
  }
  if (operands.size() > 2) {
    worst->lines.emplace_back("compared", a.name + " with " + against);
    worst->lines.emplace_back("each_with_first", words);
  }
  return *worst;
}

/// Prints the verdict and what led to it, and writes the metric file. `before` is what a text form begins with.
void output(const cli::Args& args, metric::Run& run, const Lines& verdict, const std::string& before) {
  for (const auto& [key, value] : verdict) run.attributes[key == "verdict" ? key : "verdict." + key] = value;
  const std::string form = args.text("format");
  if (form == "text")
    print(before + to_text(verdict));
  else if (form == "tsv")
    print(metric::to_tsv({run}));
  else
    print(to_json(run, verdict));
  if (!args.has("output")) return;
  metric::Store store;
  store.runs.push_back(run);
  write_file(args.text("output"), metric::to_h5(store));
}

/// What a training came to, and what is to be said of it.
struct Answered {
  compare::Settled verdict{};
  Lines lines;
};

std::string loss_unit(const Request& request) {
  return model::takes_images(request.train.model.name) ? metric::kLossOfImages : metric::kLossOfTokens;
}

/// Beside the reference; a line a step on rank 0 where it is for people.
Answered side_by_side(comm::Group& group, const Request& request, metric::Run& run, bool text, bool verbose) {
  const bool first = group.rank() == 0;
  SideBySide sides(group, request);
  const std::vector<std::string> effects = sides.pass_effects();
  if (!effects.empty()) run.attributes["pass_effects"] = fmt::format("{}", fmt::join(effects, " | "));
  if (first && text && verbose) {
    for (const std::string& effect : effects) print("pass " + effect + "\n");
  }
  if (first && text) print(header());
  cli::Progress progress;
  const Verdict verdict = sides.run({.step = [&](const StepRow& row) {
    if (!first) return;
    add(run.records, row, loss_unit(request));
    cli::ProgressLine().clear();
    if (text) print(to_text(row) + (verbose ? units_text(row, sides) : ""));
    const std::int64_t steps = request.train.max_steps;
    progress.at(static_cast<double>(row.step) / static_cast<double>(steps),
                "step " + zs::to_text(row.step) + " of " + zs::to_text(steps));
  }});
  return {verdict.kind, lines(verdict, sides, group, request)};
}

/// Beside itself; a line a repetition.
Answered repeated(comm::Group& group, const Request& request, std::int64_t times, metric::Run& run, bool text) {
  const bool first = group.rank() == 0;
  if (first && text) print(repetitions_header());
  const Repeated found = repeat(group, request, times, [&](const Repetition& repetition) {
    if (!first) return;
    add(run.records, repetition, loss_unit(request));
    if (text) print(to_text(repetition));
  });
  return {found.kind, lines(found, group)};
}

}  // namespace

std::vector<cli::Option> options() {
  std::vector<cli::Option> all;
  for (cli::Option option : experiment::config_options()) {
    const config::Known* const known = config::known_option(option.name);
    if (known && !used(known->key)) continue;
    for (const Default& own : kDefaults) {
      if (known && known->key == own.key && option.name == config::words(known->options).front())
        option.fallback = own.value, option.help.resize(std::min(option.help.find(';'), option.help.size()));
    }
    all.push_back(option);
  }
  const std::string comparing = "Comparing", running = "Running";
  all.push_back({0, "iterations", "N", "steps to train and compare", "10", {}, false, comparing});
  all.push_back(
      {0,
       "reference",
       "WHICH",
       "what is right: same is LibTorch in the target's own arithmetic; amp is LibTorch's autocast (bfloat16, "
       "or the target's float16) from float32 parameters, whatever the target computes in",
       "same",
       {"same", "amp"},
       false,
       comparing});
  all.push_back(
      {0,
       "repeat",
       "N",
       "no reference: train the same steps (1 when --iterations does not say) N times from the same state, and "
       "name the first unit and operation whose bits differ from the first time's; an injected fault strikes "
       "the last time alone",
       "",
       {},
       false,
       comparing});
  all.push_back({0,
                 "rtol",
                 "X",
                 "allowed difference relative to the reference (default: 0; 0.05 across arithmetics)",
                 "",
                 {},
                 false,
                 comparing});
  all.push_back({0,
                 "atol",
                 "X",
                 "allowed absolute difference (default: 0; 2^-24 across arithmetics of float16)",
                 "",
                 {},
                 false,
                 comparing});
  all.push_back(
      {0,
       "inject_fault",
       "STEP:PARAMETER:INDEX[:RANK]",
       "flip the lowest bit of one gradient element in the target, to see it found; or STEP:KIND:UNIT[:RANK]: "
       "have the disk lose (stale), swap (swapped) or tear (torn) what is offloaded of a unit, send a wrong "
       "scale of its parameters (scale), or, with --repeat, change a number of what its forward gives (output)",
       "",
       {},
       false,
       comparing});
  all.push_back({0,
                 "columns",
                 "NAME,...",
                 "of two recorded runs compare these columns alone (loss,grad_norm)",
                 "",
                 {},
                 false,
                 comparing});
  all.push_back({0,
                 "allow",
                 "WHAT",
                 "what is no difference either: rounding gives 'equal up to rounding' status 0",
                 "",
                 {"rounding"},
                 false,
                 comparing});
  all.push_back({'r',
                 "registry",
                 "DIR",
                 "folder of the runs that are named by id or name [$ZS_REGISTRY, else saved_models]",
                 "",
                 {},
                 false,
                 comparing});
  all.push_back({0,
                 "patterns",
                 "FILE",
                 "patterns for logs of trainers of one's own, as zs-parse(1) says [~/.config/zs/patterns]",
                 "",
                 {},
                 false,
                 comparing});
  all.push_back({0, "format", "FORM", "form of the output", "text", {"text", "tsv", "json"}, false, "Output"});
  all.push_back(
      {'o', "output", "FILE", "write the records of all steps to a metric file too", "", {}, false, "Output"});
  all.push_back({0, "verbose_logging", "", "a line for each unit of each step", "", {}, false, "Output"});
  all.push_back(experiment::local_rank_option());
  all.push_back(
      {0, "set", "KEY=VALUE", "set any key of the configuration: training.seed=7", "", {}, true, "Configuration"});
  all.push_back({0,
                 "timeout",
                 "SECONDS",
                 "how long a collective waits for a rank before the run stops",
                 "50",
                 {},
                 false,
                 running});
  return all;
}

Status Session::verify(const cli::Args& args) { return args.operands().size() >= 2 ? recorded(args) : trained(args); }

Status Session::recorded(const cli::Args& args) {
  for (const cli::Option& option : args.command().options) {
    static constexpr std::array kTaken = {"rtol",    "atol",     "format",   "output",         "allow",
                                          "columns", "registry", "patterns", "verbose_logging"};
    const bool taken = std::find(kTaken.begin(), kTaken.end(), option.name) != kTaken.end();
    if (taken || !args.has(option.name)) continue;
    if (option.name == "repeat")
      throw UsageError("--repeat trains; what was recorded several times is compared by its names: zs-verify A B C");
    throw UsageError("--" + option.name + " says nothing about recorded runs");
  }
  parse::customize(args.text("patterns"), [&](const std::string& text) { cli::warn(args.command(), text); });
  const Tolerance allowed = tolerance(args, at::kFloat);
  const std::string registry = registry::place(args.text("registry"));
  std::vector<Operand> operands;
  for (const std::string& name : args.operands()) {
    operands.push_back(operand(name, registry));
    for (std::size_t i = 0; i + 1 < operands.size(); ++i) require_two(operands[i], operands.back());
  }
  const Answer answer = compare_with_first(operands, allowed, columns(args));
  metric::Run run{"verify", {{"command", args.line()}, {"revision", cli::version()}}, answer.columns};
  output(args, run, answer.lines, columns_text(answer.columns));
  return compare::status(answer.verdict, args.text("allow") == "rounding");
}

Status Session::trained(const cli::Args& args) {
  if (args.has("allow"))
    throw UsageError("--allow is for two recorded trainings; a training beside its reference has --rtol and --atol");
  for (const char* const option : {"rtol", "atol", "reference", "verbose_logging"}) {
    if (args.has("repeat") && args.has(option))
      throw UsageError("--repeat compares bits with themselves: leave out --" + std::string(option));
  }
  const std::int64_t times = args.has("repeat") ? args.integer("repeat", 2) : 0;
  const config::Config config = configuration(args);
  const double timeout = args.real("timeout", 0.1, 1e9);
  const bool text = args.text("format") == "text";
  Request request;
  request.tolerance = tolerance(args, at::kFloat);  // refuses what is not a number before the ranks start
  ranks_.start(timeout);
  const bool first = ranks_.group().rank() == 0;
  if (first) {
    for (const std::string& warning : config.warnings()) cli::warn(args.command(), warning);
  }
  std::string device;
  comm::together(ranks_.group(), "reading of the configuration", [&] {
    device = setup::chosen_device(config.text("run.device"));
    const config::Reading reading(config);
    request.train = setup::settings(reading, ranks_.group().size(), device == "cuda");
    // What a training writes and evaluates on its way is none of a comparison's affair.
    reading.require_read([](const config::Entry& entry) { return used(entry.key); });
  });
  setup::require_same_start(ranks_.group(), config,
                            {{"the device", device},
                             {"--inject_fault", args.text("inject_fault")},
                             {"--repeat", zs::to_text(times)},
                             {"--reference", args.text("reference")}});
  comm::Group& group = ranks_.use(device, request.train.transport);
  comm::together(group, "choice of the kernels", [&] { setup::place_on(request.train, group.device()); });
  if (!request.train.engine.exact && times == 0)
    throw UsageError(
        "--reduction any promises no bits that could be verified; --repeat N shows that it repeats its own");
  request.amp = args.text("reference") == "amp";
  if (request.across() && request.train.engine.scales() && request.train.engine.loss_scaling.fixed == 0)
    throw UsageError(
        "--reference amp scales the loss by other rules than float16 here: set one scale for both, --set "
        "training.loss_scale=1024");
  request.tolerance = tolerance(args, request.train.engine.dtype, request.across());
  request.fault = args.text("inject_fault");

  setup::set_arithmetic(group, request.train);
  if (device == "cpu") setup::require_memory(group, model::make(request.train.model), request.train, host_memory());
  metric::Run run{"verify", attributes(config, request.train, args, group, request.tolerance), {}};
  if (times > 0) run.attributes["repetitions"] = zs::to_text(times);
  const Answered answered = times > 0 ? repeated(group, request, times, run, text)
                                      : side_by_side(group, request, run, text, args.has("verbose_logging"));
  if (!first) {
    // The verdict is rank 0's: a launcher that sees another status first would end rank 0 before it has spoken.
    comm::barrier(group, "end of the comparison");
    return Status::done;
  }
  output(args, run, answered.lines, "");
  comm::barrier(group, "end of the comparison");
  return compare::status(answered.verdict);
}

}  // namespace zs::verify
