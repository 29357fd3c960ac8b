// SPDX-License-Identifier: Apache-2.0
// A sweep: which parameters vary, over which values, and the runs that follow, reproducibly.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace zs::config {

enum class Distribution { uniform, log_uniform, integer };

/// One parameter: a list of values, or a range.
struct Parameter {
  std::string key;            ///< "training.learning_rate"
  std::string origin;         ///< "sweep.yaml:4"
  std::vector<Entry> values;  ///< each an entry of `key`; empty for a range
  Distribution distribution = Distribution::uniform;
  double lowest = 0, highest = 0;  ///< both are possible values

  /// Number of values; nothing for a continuous range.
  std::optional<std::uint64_t> size() const;
};

struct Sweep {
  std::string name;  ///< sweep_name, else the file's name; letters, digits, '_', '-', '.', for file names
  bool random = false;
  std::int64_t num_runs = 0;  ///< of a random sweep
  std::uint64_t seed = 42;
  std::string run;     ///< the command that starts a training, if not zs-train; else ""
  std::string resume;  ///< words that resume such a training; or ""
  std::vector<Parameter> parameters;
  std::vector<std::string> warnings;

  /// Number of combinations of values; nothing if a parameter is continuous, or if there are more than 2^64.
  std::optional<std::uint64_t> combinations() const;
};

/// Reads a sweep from a file, or stdin for "-"; throws Error, with the line, at anything invalid, and at an unknown
/// parameter that looks like a setting: its runs would all be the same. If a random sweep asks for more runs than there
/// are combinations, it warns and returns all of them. With `run`, or a "run" in the file, the keys belong to another
/// program, and none is refused.
Sweep read_sweep(const std::string& path, const std::string& run = "");
Sweep parse_sweep(std::string_view yaml, const std::string& name, const std::string& run = "");

/// Number of runs: the product of a grid, num_runs of a random sweep.
std::uint64_t run_count(const Sweep& sweep);

/// The settings of each run: a list of entries per run. A grid is the full product, the last parameter varying fastest.
/// A random sweep repeats no run, and its first n runs do not depend on num_runs. Values of continuous ranges have six
/// significant digits. Throws Error if there would be more than 100 000 runs.
std::vector<std::vector<Entry>> expand(const Sweep& sweep);

/// One run of a sweep.
struct SweepRun {
  std::string name;  ///< SWEEP_001
  std::string file;  ///< SWEEP_001.yaml
  Config config;     ///< base, the run's parameters, sweep_name and run.name; checked
  /// The first run that differs from it in nothing but seeds, which may be itself; "" where no two runs are so.
  std::string repetition_of{};
};

/// The runs of `sweep` over `base`. Throws Error if a run's configuration is not valid.
std::vector<SweepRun> sweep_runs(const Config& base, const Sweep& sweep);

/// The manifest: tab-separated, a header (run, config, one column per parameter) and a line per run.
std::string manifest(const Sweep& sweep, const std::vector<SweepRun>& runs);

/// Writes the configurations and manifest.tsv into `folder` (created if missing) and returns the paths of the
/// configurations. The manifest is written last. Throws Error if the folder holds another sweep, unless `replace`: then
/// the configurations in its manifest are removed first.
std::vector<std::string> write_sweep(const Sweep& sweep, const std::vector<SweepRun>& runs, const std::string& folder,
                                     bool replace);

}  // namespace zs::config
