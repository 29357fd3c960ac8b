// SPDX-License-Identifier: Apache-2.0
#include "verify/session.hpp"

#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/host.hpp"
#include "base/number.hpp"
#include "cli/progress.hpp"
#include "comparison/command.hpp"
#include "comparison/output.hpp"
#include "config/reading.hpp"
#include "experiment/command.hpp"
#include "metric/unit.hpp"
#include "setup/agreement.hpp"
#include "setup/describe.hpp"
#include "setup/memory.hpp"
#include "verify/repeat.hpp"
#include "verify/report.hpp"

namespace zs::verify {
namespace {

using comparison::kDefaults;
using comparison::output;
using comparison::tolerance;
using comparison::used;

config::Config configuration(const cli::Args& args) {
  config::Config config = experiment::configuration(args);
  for (const comparison::Default& known : kDefaults) {
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

attribute::Facts attributes(const config::Config& config, const setup::Settings& s, const cli::Args& args,
                            const comm::Group& group, const Tolerance& tolerance) {
  attribute::Facts settings = setup::configured(config);
  std::erase_if(settings, [](const auto& fact) { return !used(fact.first); });
  attribute::Facts facts = {{"command", args.line()},
                            {"revision", cli::version()},
                            {"world_size", zs::to_text(std::int64_t{group.size()})},
                            {"gradient_accumulation_steps", zs::to_text(std::int64_t{s.micro_steps})},
                            {"batch_size", zs::to_text(std::int64_t{s.batch_size})},
                            {"global_batch_size", zs::to_text(s.batch_size * s.micro_batches())},
                            {"seq_length", zs::to_text(static_cast<std::int64_t>(s.model.seq_length))},
                            {"passes", plan::to_text(s.passes)},
                            {"kernels", s.model.fused ? "fused" : "plain"},
                            {"rtol", zs::to_text(tolerance.rtol)},
                            {"atol", zs::to_text(tolerance.atol)}};
  facts.merge(setup::arithmetic(group.device(), s));
  facts.merge(settings);
  return facts;
}

/// The outcome of a training, and its report.
struct Answered {
  compare::Settled verdict{};
  Lines lines;
};

std::string loss_unit(const Request& request) {
  return model::takes_images(request.train.model.name) ? metric::kLossOfImages : metric::kLossOfTokens;
}

/// Compared with the reference; for people, rank 0 prints a line for each step.
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
  const Verdict verdict = sides.run([&](const StepRow& row) {
    if (!first) return;
    add(run.records, row, loss_unit(request));
    cli::ProgressLine().clear();
    if (text) print(to_text(row) + (verbose ? units_text(row, sides) : ""));
    const std::int64_t steps = request.train.max_steps;
    progress.at(static_cast<double>(row.step) / static_cast<double>(steps),
                "step " + zs::to_text(row.step) + " of " + zs::to_text(steps));
  });
  return {verdict.kind, lines(verdict, sides, group, request)};
}

/// Compared with itself; a line for each repetition.
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

/// Throws UsageError at options that do not go together.
void require_options(const cli::Args& args) {
  if (args.has("allow"))
    throw UsageError(
        "--allow is for two recorded trainings; a training and its reference are compared with --rtol and --atol");
  for (const char* const option : {"rtol", "atol", "reference", "verbose_logging"}) {
    if (args.has("repeat") && args.has(option))
      throw UsageError("--repeat compares bits with themselves: leave out --" + std::string(option));
  }
}

/// Throws UsageError where the reference would compute the same as the target, or something else by intent.
void choose_reference(const std::string& reference, Request& request) {
  request.amp = reference == "amp";
  request.apart = reference == "apart";
  request.merged = reference == "merged";
  request.whole = reference == "whole";
  const setup::Settings& train = request.train;
  if (request.merged && !train.model.adaptation.adapts())
    throw UsageError("--reference merged adds adapters to the weights: it needs --lora_rank or --lora_adapter");
  if (request.whole && train.chunks == 1)
    throw UsageError("--reference whole computes whole sequences, and so does the target: give --sequence_chunks");
  if (request.whole && train.model.dropout > 0)
    throw UsageError("--reference whole drops other elements, because its sequences are whole: leave --dropout out");
  if (request.apart && model::takes_images(train.model.name))
    throw UsageError("--reference apart computes each document alone: it needs a model that takes text");
  if (request.apart && train.packing == data::Packing::whole)
    throw UsageError(
        "--reference apart computes each document alone, and joined documents are one: give --packing masked, or none");
  if (request.apart && train.model.dropout > 0)
    throw UsageError(
        "--reference apart drops other elements, because it computes each document alone: leave --dropout out");
  if (request.apart && model::has_experts(train.model.name) && train.model.router_aux_loss_coef != 0)
    throw UsageError(
        "--reference apart computes each document alone, and the auxiliary loss of experts is of all together: set "
        "--router_aux_loss_coef 0");
  if (request.amp && request.across() && train.engine.scales() && train.engine.loss_scaling.fixed == 0)
    throw UsageError(
        "--reference amp scales the loss by other rules than float16 here: set one scale for both, --set "
        "training.loss_scale=1024");
}

}  // namespace

Status Session::verify(const cli::Args& args) {
  require_options(args);
  const std::int64_t times = args.has("repeat") ? args.integer("repeat", 2) : 0;
  const config::Config config = configuration(args);
  const double timeout = args.real("timeout", 0.1, 1e9);
  const bool text = args.text("format") == "text";
  Request request;
  request.tolerance = tolerance(args);  // refuses what is not a number before the ranks start
  ranks_->start(timeout);
  const bool first = ranks_->group().rank() == 0;
  if (first) {
    for (const std::string& warning : config.warnings()) cli::warn(args.command(), warning);
  }
  std::string device;
  comm::together(ranks_->group(), "reading of the configuration", [&] {
    device = setup::chosen_device(config.text("run.device"));
    const config::Reading reading(config);
    request.train = setup::settings(reading, ranks_->group().size(), device == "cuda");
    // A comparison ignores settings of checkpoints and evaluation.
    reading.require_read([](const config::Entry& entry) { return used(entry.key); });
  });
  setup::require_same_start(ranks_->group(), config,
                            {{"the device", device},
                             {"--inject_fault", args.text("inject_fault")},
                             {"--repeat", zs::to_text(times)},
                             {"--reference", args.text("reference")}});
  comm::Group& group = ranks_->use(device, request.train.transport, request.train.deterministic);
  comm::together(group, "choice of the kernels", [&] { setup::place_on(request.train, group); });
  choose_reference(args.text("reference"), request);
  const bool half = request.train.engine.dtype == at::kHalf;
  // Across arithmetics: float16's smallest step. Of float32, documents alone, merged adapters and whole sequences
  // differ by the order of sums.
  const bool order = (request.apart || request.merged || request.whole) && request.train.engine.dtype == at::kFloat &&
                     !request.train.tf32;
  if (request.across()) request.tolerance = tolerance(args, {order ? 1e-4 : 0.05, half ? 0x1p-24 : 0});
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
