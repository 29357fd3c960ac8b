// SPDX-License-Identifier: Apache-2.0
#include "input/kind.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "base/text.hpp"
#include "checkpoints/folders.hpp"
#include "h5/image.hpp"
#include "metric/file.hpp"
#include "parse/run.hpp"
#include "parse/tracked.hpp"
#include "probefile/folder.hpp"
#include "registry/runs.hpp"
#include "rolloutfile/form.hpp"
#include "token/file.hpp"

namespace zs::input {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLooked = 1 << 16;  // bytes

bool is_odd(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 32 && (byte < '\b' || byte > '\r') && byte != '\x1b';
}

/// Whether bytes are text: their first line is, whatever a broken machine has written after it, or few of them are
/// control characters that no text has. UTF-16 has a null byte in each character. A log that was emptied while a
/// program wrote to it begins with null bytes.
bool is_text(std::string_view bytes) {
  constexpr std::size_t kLine = 8;  // bytes: fewer say little
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) return true;
  bytes.remove_prefix(std::min(bytes.find_first_not_of('\0'), bytes.size()));
  std::string_view line = bytes.substr(0, std::min(bytes.find('\n'), bytes.size()));
  const bool enough = line.size() >= kLine;
  while (!line.empty() && utf8_size(line) > 0 && !is_odd(line.front())) line.remove_prefix(utf8_size(line));
  if (enough && line.empty()) return true;
  return static_cast<std::size_t>(std::ranges::count_if(bytes, is_odd)) <= bytes.size() / 20;
}

bool is_trace(std::string_view bytes) {
  const std::size_t begin = bytes.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return false;
  return bytes[begin] == '{' ? bytes.find("\"traceEvents\"") != std::string_view::npos
                             : bytes[begin] == '[' && bytes.find("\"ph\"") != std::string_view::npos;
}

/// A file of torch.profiler.ExecutionTraceObserver.
bool is_execution_trace(std::string_view bytes) {
  const std::size_t begin = bytes.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && bytes[begin] == '{' && bytes.find("\"nodes\"") < 4096 &&
         bytes.find("\"schema\"") < 4096;
}

Kind kind_of_file(const std::string& path) {
  std::string raw;
  Input input(path, [&](std::string_view part) { raw += raw.empty() ? part.substr(0, 4) : ""; });
  const std::string bytes = read_start(input, kLooked);
  const bool packed = raw.starts_with("\x1f\x8b") || (raw.size() >= kZstandardMagic && may_be_zstandard(raw));
  if (bytes.empty()) return Kind::empty;
  if (rolloutfile::form_of(path, bytes)) return Kind::rollout;
  if (bytes.starts_with(h5::kSignature)) return Kind::hdf5;
  if (metric::is_metrics(bytes)) return Kind::records;
  if (parse::source_of(path) != parse::Source::log) return Kind::tracked;
  // Tensors, token files and pictures are mapped or read directly: compressed files are none of them.
  if (!packed) {
    if (checkpoints::holds_tensors(path)) return Kind::tensors;
    if (token::has_header(bytes)) return Kind::tokens;
    if (bytes.starts_with("\x89PNG") || bytes.starts_with("\xFF\xD8\xFF")) return Kind::picture;
  }
  if (!is_text(bytes)) return Kind::unknown;
  if (is_trace(bytes)) return Kind::trace;
  if (is_execution_trace(bytes)) return Kind::execution;
  return bytes.starts_with("{") && bytes.find("\"zs_profile\"") < 100 ? Kind::profile : Kind::text;
}

bool is_trace_file(const std::string& path) { return is_file(path) && kind_of_file(path) == Kind::trace; }

/// Names of files that only checkpoints have, next to the names that checkpoints::is_plain() knows.
bool marks_checkpoint(const std::string& name) {
  static const std::set<std::string> kNames = {".metadata", "latest", "latest_universal", "zero_to_fp32.py"};
  return kNames.contains(name) || name.starts_with("mp_rank_") || name.find("zero_pp_rank_") != std::string::npos ||
         name.ends_with(".ckpt") || name.ends_with(".distcp");
}

/// Whether a file without a description may be a log.
bool like_log(std::string name) {
  static const std::set<std::string> kEndings = {".out", ".txt", ".jsonl", ".json", ".csv", ".h5", ".tsv"};
  if (name.starts_with(".") || name == "summary.h5" || name.ends_with("_numbers.tsv") ||
      name == "revision_comparison_data.json")
    return false;  // files that zs writes next to logs
  if (registry::is_csv_name(name)) return false;
  const fs::path plain = uncompressed_name(name);
  const std::string rotation = plain.extension().string();
  const bool rotated = rotation.size() > 1 && std::all_of(rotation.begin() + 1, rotation.end(), ::isdigit);
  return kEndings.contains((rotated ? plain.stem() : plain).extension().string());
}

/// The regular files of a folder for whose names a test holds, in order.
template <typename Test>
std::vector<std::string> files_in(const std::string& folder, Test test) {
  std::vector<std::string> files;
  for (const fs::path& entry : entries_of(folder)) {
    if (test(entry.filename().string()) && is_file(entry)) files.push_back(entry.string());
  }
  return files;
}

std::vector<Kind> kinds_of_folder(const std::string& folder) {
  bool foreign = checkpoints::is_trainers(folder), registry = false, tracked = false;
  for (const fs::path& entry : entries_of(folder)) {
    const std::string path = entry.string(), name = entry.filename().string();
    foreign = foreign || marks_checkpoint(name) || checkpoints::holds_tensors(path);
    tracked = tracked || parse::source_of(path) != parse::Source::log || name.starts_with("offline-run-") ||
              name.starts_with("run-2");  // W&B's: run-20261122_030357-ID
    registry = registry || is_there(path + "/metrics.h5");
  }
  std::vector<Kind> kinds;
  const auto add = [&](Kind kind, bool is) {
    if (is) kinds.push_back(kind);
  };
  const bool checkpoint = checkpoints::is_plain(folder);
  // Megatron-core's checkpoints have a metadata.json too.
  add(Kind::results, is_there(folder + "/experiment_log.txt") ||
                         (is_there(folder + "/metadata.json") && !is_there(folder + "/common.pt")));
  add(Kind::run, is_there(folder + "/metrics.h5") || is_there(folder + "/record"));
  const bool probe = !probefile::ranks_in(folder).empty();
  add(Kind::probe, probe);
  add(Kind::rollout, rolloutfile::has_dumps(folder));
  add(Kind::traces, !traces_in(folder).empty());
  add(Kind::profile, is_there(folder + "/profile.json"));
  add(Kind::checkpoint, checkpoint || (foreign && !probe));
  add(Kind::checkpoints, !foreign && !checkpoints::checkpoints_in(folder).empty());
  add(Kind::registry, registry);
  // A tracker's own folder has logs of the tracker; a folder of logs may have a tracker's folder in it.
  add(Kind::trackers, tracked && !parse::tracked_jobs(folder).empty());
  // JSON or text files about a run or checkpoint are not logs.
  add(Kind::logs, !parse::jobs_in(folder).empty());
  if (kinds.empty()) {
    add(Kind::trackers, !parse::tracked_jobs(folder).empty());
    add(Kind::logs, kinds.empty() && !like_logs(folder).empty());
  }
  if (kinds.empty()) kinds.push_back(Kind::nothing);
  return kinds;
}

}  // namespace

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::stream:
      return "a stream";
    case Kind::records:
      return "a file of metric records";
    case Kind::hdf5:
      return "a file of metric records in HDF5";
    case Kind::tracked:
      return "a run of TensorBoard or W&B";
    case Kind::trace:
      return "a profiler trace";
    case Kind::execution:
      return "an execution trace of PyTorch, without times";
    case Kind::profile:
      return "a profile of a step's operations";
    case Kind::tensors:
      return "a file of tensors";
    case Kind::tokens:
      return "a token file";
    case Kind::picture:
      return "a picture";
    case Kind::text:
      return "a text";
    case Kind::empty:
      return "empty";
    case Kind::unknown:
      return "not a file that zs knows";
    case Kind::results:
      return "the results folder of an experiment";
    case Kind::run:
      return "the folder of a run";
    case Kind::probe:
      return "the folder of a probe";
    case Kind::rollout:
      return "a dump of log-probabilities";
    case Kind::traces:
      return "a folder of profiler traces";
    case Kind::checkpoint:
      return "a checkpoint";
    case Kind::checkpoints:
      return "a folder of checkpoints";
    case Kind::registry:
      return "a folder of runs";
    case Kind::trackers:
      return "a folder of runs of TensorBoard, W&B or MLflow";
    case Kind::logs:
      return "a folder of logs";
    case Kind::nothing:
      return "a folder without anything that zs knows";
  }
  return "";
}

std::vector<Kind> kinds_of(const std::string& path) {
  if (path == "-") return {Kind::stream};
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (!fs::exists(status)) throw Error(path, 0, failure ? failure.message() : "No such file or directory");
  if (fs::is_directory(status)) return kinds_of_folder(path);
  return {fs::is_regular_file(status) ? kind_of_file(path) : Kind::stream};
}

bool is(const std::string& path, Kind kind) { return is_there(path) && kinds_of(path).front() == kind; }

std::vector<std::string> traces_in(const std::string& folder) {
  const auto ends = [](const std::string& ending) {
    return [ending](const std::string& name) { return uncompressed_name(name).ends_with(ending); };
  };
  std::vector<std::string> files = files_in(folder, ends(".pt.trace.json"));
  if (!files.empty()) return files;
  files = files_in(folder, ends(".json"));
  std::erase_if(files, [](const std::string& file) { return !is_trace_file(file); });
  return files;
}

std::vector<std::string> like_logs(const std::string& folder) { return files_in(folder, like_log); }

}  // namespace zs::input
