// SPDX-License-Identifier: Apache-2.0
// From a sweep to its runs: the grid, and the random draw.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <unordered_map>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/secret.hpp"
#include "config/sweep.hpp"

namespace zs::config {
namespace {

constexpr std::uint64_t kMostRuns = 100'000;
Entry value(const Parameter& parameter, std::uint64_t index) {
  if (!parameter.values.empty()) return parameter.values[index];
  return {parameter.key, to_text(static_cast<std::int64_t>(parameter.lowest) + static_cast<std::int64_t>(index)),
          parameter.origin, Kind::plain};
}

/// The combination of that index, the last parameter varying fastest.
std::vector<Entry> combination(const Sweep& sweep, std::uint64_t index) {
  std::vector<Entry> entries(sweep.parameters.size());
  for (std::size_t i = entries.size(); i-- > 0;) {
    const std::uint64_t size = *sweep.parameters[i].size();
    entries[i] = value(sweep.parameters[i], index % size);
    index /= size;
  }
  return entries;
}

/// Draws that do not depend on the standard library's distributions, whose results are not standardised.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}
  /// Uniform below `bound`, without bias.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    std::uint64_t draw = bits_();
    while (draw >= limit) draw = bits_();
    return draw % bound;
  }
  /// Uniform in [0, 1).
  double unit() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 bits_;
};

/// Six significant digits: readable, and the same whatever the last bit of exp() is.
double rounded(double x) {
  if (x == 0) return x;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(x))));
  return std::isfinite(scale) && scale > 0 ? *parse_real(to_text(std::round(x * scale) / scale)) : x;
}

Entry draw(const Parameter& parameter, Dice& dice) {
  if (const auto size = parameter.size()) return value(parameter, dice.below(*size));
  const bool log = parameter.distribution == Distribution::log_uniform;
  const double low = log ? std::log(parameter.lowest) : parameter.lowest,
               high = log ? std::log(parameter.highest) : parameter.highest;
  const double at = low + dice.unit() * (high - low);
  const double x = std::clamp(rounded(log ? std::exp(at) : at), parameter.lowest, parameter.highest);
  return {parameter.key, to_text(x), parameter.origin, Kind::plain};
}

std::vector<std::vector<Entry>> draw_runs(const Sweep& sweep) {
  Dice dice(sweep.seed);
  std::vector<std::vector<Entry>> runs;
  const auto wanted = static_cast<std::size_t>(sweep.num_runs);
  if (const auto total = sweep.combinations()) {
    // Fisher and Yates' shuffle of all indices, of which only the touched ones are kept.
    std::unordered_map<std::uint64_t, std::uint64_t> moved;
    const auto at = [&](std::uint64_t i) { return moved.count(i) ? moved[i] : i; };
    for (std::uint64_t i = 0; i < wanted; ++i) {
      const std::uint64_t j = i + dice.below(*total - i);
      const std::uint64_t chosen = at(j);
      moved[j] = at(i);
      runs.push_back(combination(sweep, chosen));
    }
    return runs;
  }
  std::set<std::vector<std::string>> seen;
  for (std::size_t tries = 0; runs.size() < wanted; ++tries) {
    if (tries > 1000 + 100 * wanted)
      throw Error("the ranges of the sweep hold too few values for num_runs " + std::to_string(wanted));
    std::vector<Entry> run;
    std::vector<std::string> texts;
    for (const Parameter& parameter : sweep.parameters) texts.push_back(run.emplace_back(draw(parameter, dice)).value);
    if (seen.insert(texts).second) runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace

std::optional<std::uint64_t> Sweep::combinations() const {
  std::uint64_t product = 1;
  for (const Parameter& parameter : parameters) {
    const auto size = parameter.size();
    if (!size || __builtin_mul_overflow(product, *size, &product)) return {};
  }
  return product;
}

std::uint64_t run_count(const Sweep& sweep) {
  if (sweep.random) return static_cast<std::uint64_t>(sweep.num_runs);
  for (const Parameter& parameter : sweep.parameters) {
    if (!parameter.size())
      throw Error(parameter.origin, 0,
                  parameter.key + " is a continuous range: a grid needs values (or choose strategy: random)");
  }
  const auto total = sweep.combinations();
  if (!total) throw Error("the sweep has more than 2^64 runs");
  return *total;
}

std::vector<std::vector<Entry>> expand(const Sweep& sweep) {
  const std::uint64_t count = run_count(sweep);
  if (count > kMostRuns)
    throw Error("the sweep has " + std::to_string(count) + " runs, more than " + std::to_string(kMostRuns));
  if (sweep.random) return draw_runs(sweep);
  std::vector<std::vector<Entry>> runs;
  for (std::uint64_t i = 0; i < count; ++i) runs.push_back(combination(sweep, i));
  return runs;
}

// The runs of a sweep as configurations, and the folder they are written into.

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
