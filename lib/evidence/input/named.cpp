// SPDX-License-Identifier: Apache-2.0
#include "input/named.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "registry/query.hpp"
#include "registry/runs.hpp"

namespace zs::input {
namespace {

namespace fs = std::filesystem;

/// The kinds that a tool takes, and their words for a sentence.
struct Taker {
  std::string_view tool, what;
  std::vector<Kind> kinds;
  std::string_view remedy{};  ///< for what holds runs, and has not what the tool takes
};

constexpr std::string_view kOfRuns =
    "logs, metric records, runs, runs of TensorBoard, W&B and MLflow, and folders of these";
constexpr std::string_view kOfTraces = "profiler traces and folders of them";
constexpr std::string_view kOfGradients = "runs, checkpoints and files of gradients";

const std::vector<Taker>& takers() {
  using enum Kind;
  static const std::vector<Kind> kRuns = {stream, records, hdf5,     tracked, text,    empty,
                                          run,    results, registry, logs,    trackers};
  static const std::vector<Kind> kGradients = {tensors, run, checkpoint, checkpoints};
  static const std::vector<Kind> kTraces = {stream, trace, traces};
  static const std::vector<Kind> kTexts = {stream, text, records, trace, execution, profile, empty};
  static const std::vector<Taker> kAll = {
      {"zs-parse", kOfRuns, kRuns},
      {"zs-aggregate", kOfRuns, kRuns},
      {"zs-report", kOfRuns, kRuns},
      {"zs-plot", kOfRuns, kRuns},
      {"zs-verify",
       "two or more of runs, of checkpoints, of files of tensors, or of probes, and dumps of log-probabilities",
       {records, hdf5, tracked, tensors, text, empty, run, results, registry, logs, trackers, probe, rollout,
        checkpoint, checkpoints}},
      {"zs-plot gradients", kOfGradients, kGradients},
      {"zs-report --gradients", kOfGradients, kGradients},
      {"zs-trace", kOfTraces, kTraces},
      {"zs-plot trace", kOfTraces, kTraces},
      {"zs-report --trace", kOfTraces, kTraces},
      {"zs-checkpoint", "checkpoints and files of tensors", {tensors, checkpoint, checkpoints}},
      {"zs-plan",
       "the profile.json of a run, and a run that has one",
       {stream, profile},
       "zs-train --deepcompile writes it"},
      {"zs-runs", "runs and results folders", {run, results}},
      {"zs-runs of a run", "runs", {run}},
      {"zs-runs of an experiment", "results folders", {results}},
      {"zs-runs --output", kOfRuns, kRuns},
      {"zs-runs import",
       "a table of runs, or a summary",
       {stream, text, records, hdf5, empty},
       "make a summary first: zs-aggregate LOGS -o s.h5, then zs-runs import s.h5"},
      {"zs-tokenize", "text", kTexts},
      {"zs-tokenize --decode", "token files", {tokens, unknown}},
      {"zs-tokenize --info", "token files", {tokens, unknown}},
      {"zs-train", "a configuration", {stream, text, empty}},
      {"zs-train --resume", "a run", {run}},
      {"zs-verify of one operand", "a configuration or a recording", {stream, text, empty, probe}},
      {"zs-sweep", "a configuration and a sweep", {stream, text, empty}},
  };
  return kAll;
}

bool takes(const Taker& taker, Kind kind) { return std::ranges::find(taker.kinds, kind) != taker.kinds.end(); }

[[noreturn]] void refuse(const std::string& path, Kind kind, const Taker& taker) {
  constexpr std::size_t kMost = 4;
  if (const auto& runs = takers().front().kinds;
      !taker.remedy.empty() && kind != Kind::unknown && std::ranges::find(runs, kind) != runs.end())
    throw Error(path, 0,
                "is " + std::string(name(kind)) + "; " + std::string(taker.tool) + " takes " + std::string(taker.what) +
                    "; " + std::string(taker.remedy));
  std::vector<std::string> others;
  for (const Taker& other : takers()) {
    // Any text may be tokenized; who names a text means more by it.
    const bool part = other.tool == "zs-tokenize" || other.tool.find(" of ") != std::string_view::npos ||
                      other.tool.ends_with("--resume");
    if (kind != Kind::unknown && takes(other, kind) && !part && others.size() < kMost) others.emplace_back(other.tool);
  }
  std::string text =
      "is " + std::string(name(kind)) + "; " + std::string(taker.tool) + " takes " + std::string(taker.what);
  for (std::size_t i = 0; i < others.size(); ++i)
    text += (i == 0 ? "; " : i + 1 < others.size() ? ", " : " and ") + others[i];
  if (!others.empty()) text += others.size() > 1 ? " take it" : " takes it";
  throw Error(path == "-" ? "stdin" : path, 0, text);
}

}  // namespace

Named named(const std::string& operand, const std::string& registry, std::string_view tool) {
  const auto taker = std::ranges::find(takers(), tool, &Taker::tool);
  if (taker == takers().end()) throw Error("no row says what " + std::string(tool) + " takes");
  const auto resolve = [&](Named made) -> std::optional<Named> {
    while (made.path.size() > 1 && made.path.ends_with('/')) made.path.pop_back();  // as a shell completes it
    const std::vector<Kind> kinds = kinds_of(made.path);
    const auto kind = std::ranges::find_if(kinds, [&](Kind each) { return takes(*taker, each); });
    made.kind = kind == kinds.end() ? kinds.front() : *kind;
    return kind == kinds.end() ? std::nullopt : std::optional(made);
  };
  const bool path = operand == "-" || registry.empty() || is_there(operand);
  if (path) {
    std::error_code denied;
    if (operand != "-" && fs::status(operand, denied).type() == fs::file_type::not_found)
      throw Error(operand, 0, "No such file or directory; " + std::string(tool) + " takes " + std::string(taker->what));
    if (const std::optional<Named> made = resolve({operand, operand})) return *made;
    if (operand == "-" || registry.empty() || operand.find('/') != std::string::npos)
      refuse(operand, kinds_of(operand).front(), *taker);
  }
  registry::Place place;
  try {
    place = registry::place_of(operand, registry);
  } catch (const Error& unknown) {
    const std::string text = unknown.what();
    if (!path && text == "no run '" + operand + "'") throw Error(text + ", and no file or folder of that name");
    if (!path) throw;
    refuse(operand, kinds_of(operand).front(), *taker);
  }
  if (const std::optional<Named> made = resolve({operand, place.folder, Kind::nothing, place.name})) return *made;
  refuse(place.folder, kinds_of(place.folder).front(), *taker);
}

std::vector<Named> named(const std::vector<std::string>& operands, const std::string& registry, std::string_view tool) {
  const auto is_table_of_runs = [](const std::string& operand) {  // as a shell finds it by saved_models/*
    const fs::path path = operand;
    return registry::is_csv_name(path.filename().string()) &&
           is(path.has_parent_path() ? path.parent_path().string() : ".", Kind::registry);
  };
  std::vector<Named> inputs;
  for (const std::string& operand : operands) {
    if (operands.size() == 1 || !is_table_of_runs(operand)) inputs.push_back(named(operand, registry, tool));
  }
  return inputs;
}

registry::Run run(const std::string& operand, const std::string& registry, std::string_view tool) {
  const fs::path folder = fs::canonical(named(operand, registry, tool).path);
  const std::string id = folder.filename().string();
  std::error_code ignored;
  const bool here = fs::equivalent(folder, fs::path(registry) / id, ignored);
  const std::string place = here ? registry : folder.parent_path().string();
  if (!registry::registered(place, id))
    throw Error(operand, 0, "is the folder of a run that no registry has: it has no record");
  return {place, id};
}

std::vector<std::string> traces(const std::vector<Named>& named) {
  std::vector<std::string> files;
  for (const Named& one : named) {
    if (one.kind != Kind::traces) {
      files.push_back(one.path);
      continue;
    }
    for (std::string& file : traces_in(one.path)) files.push_back(std::move(file));
  }
  return files;
}

std::vector<std::string> paths(const std::vector<Named>& named) {
  std::vector<std::string> names;
  for (const Named& one : named) names.push_back(one.path);
  return names;
}

}  // namespace zs::input
