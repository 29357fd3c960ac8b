// SPDX-License-Identifier: Apache-2.0
#include "gradient/source.hpp"

#include <algorithm>
#include <filesystem>

#include "base/file.hpp"
#include "base/json.hpp"
#include "base/number.hpp"
#include "checkpoints/folders.hpp"

namespace zs::gradient {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint_";
constexpr const char* kFile = "gradients.pt";
constexpr std::size_t kLargestState = 64 << 20;  // bytes

/// Other users may write to a registry: only regular files are opened, since reading a pipe would block.
bool has_gradients(const fs::path& folder) {
  std::error_code failure;
  return fs::is_regular_file(folder / kFile, failure);
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
    return json_of(read_regular(path, kLargestState).bytes, path).at("step").get<std::int64_t>();
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

void add_run(const fs::path& run, Sources& sources) {
  const std::vector<checkpoints::Checkpoint> all = checkpoints::checkpoints_in(run.string());
  if (all.empty()) throw Error(run.string(), 0, "has no checkpoint: train with --save_steps to have some");
  std::size_t added = 0;
  for (const checkpoints::Checkpoint& checkpoint : all) {
    if (!has_gradients(checkpoint.path)) {
      sources.without.push_back(checkpoint.path);
    } else {
      sources.found.push_back(source(checkpoint.path));
      ++added;
    }
  }
  if (added == 0) throw Error(all.back().path, 0, kReason + (all.size() > 1 ? "; so has no other checkpoint" : ""));
}

}  // namespace

Sources find(const std::vector<input::Named>& named) {
  Sources sources;
  for (const input::Named& one : named) {
    const fs::path path = plain(one.path);
    std::string subject = path.string();
    if (one.kind == input::Kind::checkpoint) {
      if (!has_gradients(path)) throw Error(path.string(), 0, kReason);
      sources.found.push_back(source(path));
    } else if (one.kind == input::Kind::tensors) {
      sources.found.push_back({path.string(), path.parent_path().filename().string(), step_of(path.parent_path())});
    } else {
      add_run(path, sources);
      subject = one.run.empty() ? fs::absolute(path).filename().string() : one.run;
    }
    if (sources.subject.empty()) sources.subject = subject;
  }
  return sources;
}

}  // namespace zs::gradient
