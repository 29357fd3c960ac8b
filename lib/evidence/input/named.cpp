// SPDX-License-Identifier: Apache-2.0
#include "input/named.hpp"

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "registry/query.hpp"

namespace zs::input {
namespace {

namespace fs = std::filesystem;

/// The kinds that a tool takes, and their words for a sentence.
struct Taker {
  std::string_view tool, what;
  std::vector<Kind> kinds;
};

constexpr std::string_view kOfRuns = "logs, metric records, runs, runs of TensorBoard and W&B, and folders of these";
constexpr std::string_view kOfTraces = "profiler traces and folders of them";
constexpr std::string_view kOfGradients = "runs, checkpoints and files of gradients";

const std::vector<Taker>& takers() {
  using enum Kind;
  static const std::vector<Kind> kRuns = {stream, records, hdf5,     tracked, text,    empty,
                                          run,    results, registry, logs,    trackers};
  static const std::vector<Kind> kGradients = {tensors, run, checkpoint, checkpoints};
  static const std::vector<Kind> kTraces = {stream, trace, traces};
  static const std::vector<Kind> kTexts = {stream, text, records, trace, profile, empty};
  static const std::vector<Taker> kAll = {
      {"zs-parse", kOfRuns, kRuns},
      {"zs-aggregate", kOfRuns, kRuns},
      {"zs-report", kOfRuns, kRuns},
      {"zs-plot", kOfRuns, kRuns},
      {"zs-verify",
       "two or more of runs, of checkpoints, of files of tensors, or of probes",
       {records, hdf5, tracked, tensors, text, empty, run, results, registry, logs, trackers, probe, checkpoint,
        foreign, checkpoints}},
      {"zs-plot gradients", kOfGradients, kGradients},
      {"zs-report --gradients", kOfGradients, kGradients},
      {"zs-trace", kOfTraces, kTraces},
      {"zs-plot trace", kOfTraces, kTraces},
      {"zs-report --trace", kOfTraces, kTraces},
      {"zs-checkpoint", "checkpoints and files of tensors", {tensors, checkpoint, foreign, checkpoints}},
      {"zs-plan", "the profile.json of a run, and its folder", {stream, profile}},
      {"zs-runs", "runs and results folders", {run, results}},
      {"zs-runs --output", kOfRuns, kRuns},
      {"zs-runs import", "a table of runs, or a summary", {stream, text, records, hdf5, empty}},
      {"zs-tokenize", "text", kTexts},
      {"zs-tokenize --decode", "token files", {tokens, unknown}},
      {"zs-tokenize --info", "token files", {tokens, unknown}},
      {"zs-train", "a configuration", {stream, text, empty}},
      {"zs-verify of one operand", "a configuration", {stream, text, empty}},
      {"zs-sweep", "a configuration and a sweep", {stream, text, empty}},
  };
  return kAll;
}

bool takes(const Taker& taker, Kind kind) { return std::ranges::find(taker.kinds, kind) != taker.kinds.end(); }

[[noreturn]] void refuse(const std::string& path, Kind kind, const Taker& taker) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> others;
  for (const Taker& other : takers()) {
    // Any text may be tokenized; who names a text means more by it.
    if (kind != Kind::unknown && takes(other, kind) && other.tool != "zs-tokenize" && others.size() < kMost)
      others.emplace_back(other.tool);
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
  Named made{operand, operand};
  while (made.path.size() > 1 && made.path.ends_with('/')) made.path.pop_back();  // as a shell completes it
  if (operand != "-" && !registry.empty() && !is_there(operand)) {
    registry::Place place = registry::place_of(operand, registry);
    made.path = std::move(place.folder), made.run = std::move(place.name);
  }
  const auto taker = std::ranges::find(takers(), tool, &Taker::tool);
  if (taker == takers().end()) throw Error("no row says what " + std::string(tool) + " takes");
  const std::vector<Kind> kinds = kinds_of(made.path);
  const auto kind = std::ranges::find_if(kinds, [&](Kind each) { return takes(*taker, each); });
  if (kind == kinds.end()) refuse(made.path, kinds.front(), *taker);
  made.kind = *kind;
  return made;
}

std::vector<Named> named(const std::vector<std::string>& operands, const std::string& registry, std::string_view tool) {
  std::vector<Named> all;
  for (const std::string& operand : operands) all.push_back(named(operand, registry, tool));
  return all;
}

std::string run_id(const std::string& operand, const std::string& registry, std::string_view tool) {
  if (!is_there(operand)) return operand;
  try {
    registry::place_of(operand, registry);
    return operand;
  } catch (const Error&) {  // no run of that name: it means the path
  }
  const fs::path folder = fs::path(named(operand, "", tool).path + "/").parent_path();
  std::error_code ignored;
  if (!fs::equivalent(folder, fs::path(registry) / folder.filename(), ignored))
    throw Error(operand, 0, "is not in the registry " + registry + ": name its own by --registry");
  return folder.filename().string();
}

std::vector<std::string> traces(const std::vector<Named>& named) {
  std::vector<std::string> all;
  for (const Named& one : named) {
    if (one.kind != Kind::traces) {
      all.push_back(one.path);
      continue;
    }
    for (std::string& file : traces_in(one.path)) all.push_back(std::move(file));
  }
  return all;
}

std::vector<std::string> paths(const std::vector<Named>& named) {
  std::vector<std::string> all;
  for (const Named& one : named) all.push_back(one.path);
  return all;
}

}  // namespace zs::input
