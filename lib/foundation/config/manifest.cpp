// SPDX-License-Identifier: Apache-2.0
// The runs of a sweep as configurations, and the folder they are written into.
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/secret.hpp"
#include "config/sweep.hpp"

namespace zs::config {
namespace {

constexpr const char* kManifest = "manifest.tsv";

std::string numbered(const std::string& name, std::size_t number, std::size_t count) {
  std::string digits = std::to_string(number);
  const std::size_t width = std::max<std::size_t>(3, std::to_string(count).size());
  digits.insert(0, width - digits.size(), '0');
  return name + "_" + digits;
}

/// Tabs and line ends would break the table.
std::string cell(std::string text) {
  for (char& c : text) {
    if (c == '\t' || c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

/// The configurations in a manifest: names of files next to it.
std::set<std::string> listed(const std::string& manifest) {
  std::istringstream lines(manifest);
  std::string line;
  std::set<std::string> files;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::string run, file;
    std::getline(cells, run, '\t');
    std::getline(cells, file, '\t');
    if (file.ends_with(".yaml") && file.find('/') == std::string::npos) files.insert(file);
  }
  return files;
}

bool is_seed(std::string_view key) { return key == "seed" || key.ends_with(".seed") || key.ends_with("_seed"); }

/// Runs that differ in seeds alone are repetitions of the first of them.
void find_repetitions(const std::vector<std::vector<Entry>>& points, std::vector<SweepRun>& runs) {
  std::map<std::vector<std::string>, std::string> firsts;
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<std::string> values;
    for (const Entry& entry : points[i]) {
      if (!is_seed(entry.key)) values.push_back(entry.value);
    }
    runs[i].repetition_of = firsts.try_emplace(std::move(values), runs[i].name).first->second;
  }
  if (firsts.size() == runs.size()) {
    for (SweepRun& run : runs) run.repetition_of.clear();
  }
}

}  // namespace

std::vector<SweepRun> sweep_runs(const Config& base, const Sweep& sweep) {
  const auto points = expand(sweep);
  std::vector<SweepRun> runs;
  for (std::size_t i = 0; i < points.size(); ++i) {
    SweepRun run{numbered(sweep.name, i + 1, points.size()), "", base};
    run.file = run.name + ".yaml";
    for (const Entry& entry : points[i]) run.config.set(entry);
    run.config.set({"run.name", run.name, "zs-sweep", Kind::plain});
    run.config.set({"sweep_name", sweep.name, "zs-sweep", Kind::plain});
    if (sweep.run.empty()) run.config.check();
    for (const Entry& entry : run.config.entries()) {  // zs-train needs none; another's training may
      if (!sweep.run.empty() && withheld(entry.key, entry.value) != entry.value)
        throw Error(entry.origin, 0,
                    entry.key + " is a secret, and a sweep is written into files: leave it out, and export a variable");
    }
    runs.push_back(std::move(run));
  }
  find_repetitions(points, runs);
  return runs;
}

std::string manifest(const Sweep& sweep, const std::vector<SweepRun>& runs) {
  std::string out = "run\tconfig";
  for (const Parameter& parameter : sweep.parameters) out += "\t" + cell(parameter.key);
  out += "\n";
  for (const SweepRun& run : runs) {
    out += run.name + "\t" + run.file;
    for (const Parameter& parameter : sweep.parameters) {
      const Entry* const entry = run.config.find(parameter.key);
      out += "\t" + (entry ? cell(entry->value) : "null");
    }
    out += "\n";
  }
  return out;
}

std::vector<std::string> write_sweep(const Sweep& sweep, const std::vector<SweepRun>& runs, const std::string& folder,
                                     bool replace) {
  namespace fs = std::filesystem;
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw Error(folder, 0, failure.message());
  const fs::path target(folder);
  const std::string table = manifest(sweep, runs);
  if (fs::exists(target / kManifest)) {
    const std::string earlier = read_regular((target / kManifest).string(), most_in_memory()).bytes;
    if (earlier != table && !replace)
      throw Error((target / kManifest).string(), 0,
                  "lists another sweep: choose another folder, or give --force to replace it");
    if (earlier != table) {
      fs::remove(target / kManifest);
      for (const std::string& file : listed(earlier)) fs::remove(target / file);
    }
  }
  std::vector<std::string> paths;
  for (const SweepRun& run : runs) write_file(paths.emplace_back((target / run.file).string()), run.config.to_yaml());
  write_file((target / kManifest).string(), table);
  return paths;
}

}  // namespace zs::config
