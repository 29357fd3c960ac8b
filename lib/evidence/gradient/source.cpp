// SPDX-License-Identifier: Apache-2.0
#include "gradient/source.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/number.hpp"
#include "registry/index.hpp"
#include "registry/query.hpp"

namespace zs::gradient {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint_";
constexpr const char* kFile = "gradients.pt";
constexpr std::size_t kLargestState = 64 << 20;  // bytes

/// A registry may be anybody's: what is no file there is not opened, since a pipe would keep us waiting.
bool has_gradients(const fs::path& folder) {
  std::error_code failure;
  return fs::is_regular_file(folder / kFile, failure);
}

bool is_checkpoint(const fs::path& folder) {
  std::error_code ignored;
  for (const char* const file : {"accelerator_states", "pytorch_model.bin", kFile}) {
    if (fs::exists(folder / file, ignored)) return true;
  }
  return false;
}

std::optional<std::int64_t> step_in_name(const fs::path& folder) {
  const std::string name = folder.filename().string();
  if (!name.starts_with(kPrefix)) return {};
  return parse_int(std::string_view(name).substr(kPrefix.size()));
}

/// Steps done, from the checkpoint's own state, else from its folder's name.
std::optional<std::int64_t> step_of(const fs::path& folder) {
  const std::string path = (folder / "accelerator_states/state.json").string();
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return step_in_name(folder);
  try {
    return nlohmann::json::parse(read_regular(path, kLargestState).bytes).at("step").get<std::int64_t>();
  } catch (const nlohmann::json::exception& error) {
    throw Error(path, 0, error.what());
  }
}

/// "runs/a/checkpoint_10/" as "runs/a/checkpoint_10".
fs::path plain(const std::string& name) {
  const fs::path path = fs::path(name).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

Source source(const fs::path& folder) {
  return {(folder / kFile).string(), folder.filename().string(), step_of(folder)};
}

const std::string kReason =
    "has no gradients.pt: it was saved with --save_gradients false, or on a signal by a zs-train that did not save "
    "them then";

/// The folders of a run's checkpoints by step, the final one last; empty where this is no run's folder.
std::vector<fs::path> checkpoints(const fs::path& run) {
  std::vector<fs::path> all;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(run, failure)) {
    if (step_in_name(entry.path()) && entry.is_directory(failure)) all.push_back(entry.path());
  }
  std::sort(all.begin(), all.end(),
            [](const fs::path& a, const fs::path& b) { return *step_in_name(a) < *step_in_name(b); });
  if (fs::is_directory(run / "final_checkpoint", failure)) all.push_back(run / "final_checkpoint");
  return all;
}

void add_run(const fs::path& run, Sources& sources) {
  const std::vector<fs::path> all = checkpoints(run);
  if (all.empty()) throw Error(run.string(), 0, "has no checkpoint: train with --save_steps to have some");
  std::size_t added = 0;
  for (const fs::path& folder : all) {
    if (!has_gradients(folder)) {
      sources.without.push_back(folder.string());
    } else {
      sources.found.push_back(source(folder));
      ++added;
    }
  }
  if (added == 0) throw Error(all.back().string(), 0, kReason + (all.size() > 1 ? "; so has no other checkpoint" : ""));
}

/// The folder of a run of the registry, and its name.
std::pair<fs::path, std::string> registered(const std::string& name, const std::string& registry,
                                            const FaultSink& faults) {
  const registry::Runs runs = registry::read_runs(registry, faults);
  const std::size_t row = registry::find_run(runs, name);
  return {fs::path(registry) / runs.text(row, "run_id"), runs.text(row, "run_name")};
}

}  // namespace

Sources find(const std::vector<std::string>& names, const std::string& registry, const FaultSink& faults) {
  Sources sources;
  for (const std::string& name : names) {
    const fs::path path = plain(name);
    std::error_code ignored;
    std::string subject = path.string();
    if (fs::is_directory(path, ignored) && is_checkpoint(path)) {
      if (!has_gradients(path)) throw Error(path.string(), 0, kReason);
      sources.found.push_back(source(path));
    } else if (fs::is_directory(path, ignored) && !checkpoints(path).empty()) {
      add_run(path, sources);
      subject = fs::absolute(path).filename().string();
    } else if (fs::exists(path, ignored) && !fs::is_directory(path, ignored)) {
      sources.found.push_back({path.string(), path.parent_path().filename().string(), step_of(path.parent_path())});
    } else {
      if (name.find('/') != std::string::npos) {
        throw Error(name, 0, fs::exists(path, ignored) ? "holds no checkpoint" : "No such file or directory");
      }
      const auto [folder, run_name] = registered(name, registry, faults);
      add_run(folder, sources);
      subject = run_name;
    }
    if (sources.subject.empty()) sources.subject = subject;
  }
  return sources;
}

}  // namespace zs::gradient
