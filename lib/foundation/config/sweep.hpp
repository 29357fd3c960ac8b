// SPDX-License-Identifier: Apache-2.0
// A sweep: which parameters vary, over what, and the runs that follow from it, always the same ones.
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
  double lowest = 0, highest = 0;  ///< both within the range

  /// How many values there are; nothing for a continuous range.
  std::optional<std::uint64_t> size() const;
};

struct Sweep {
  std::string name;  ///< sweep_name, else the file's name; names files: letters, digits, '_', '-', '.'
  bool random = false;
  std::int64_t num_runs = 0;  ///< of a random sweep
  std::uint64_t seed = 42;
  std::string run;     ///< the command that runs a training, where it is not zs-train; else ""
  std::string resume;  ///< words that go on with such a training; or ""
  std::vector<Parameter> parameters;
  std::vector<std::string> warnings;

  /// How many combinations of values there are; nothing where a parameter is continuous, or they are more than
  /// 2^64.
  std::optional<std::uint64_t> combinations() const;
};

/// Reads a sweep from a file, or stdin for "-"; throws Error, with the line, at what it cannot mean, and at a parameter
/// that looks like a setting and is read by nothing: its runs would all be the same. A random sweep that asks for more
/// runs than there are combinations gets a warning, and all of them.
/// With `run`, or a "run" in the file, the keys are another program's, and none is refused.
Sweep read_sweep(const std::string& path, const std::string& run = "");
Sweep parse_sweep(std::string_view yaml, const std::string& name, const std::string& run = "");

/// How many runs the sweep has: the product of a grid, num_runs of a random one.
std::uint64_t run_count(const Sweep& sweep);

/// What each run sets, a list of entries per run. A grid is the full product, the last parameter varying fastest.
/// A random sweep repeats nothing, and its first n runs do not depend on num_runs. Values of continuous ranges have
/// six significant digits. Throws Error where the runs would be more than 100 000.
std::vector<std::vector<Entry>> expand(const Sweep& sweep);

/// One run of a sweep.
struct SweepRun {
  std::string name;  ///< SWEEP_001
  std::string file;  ///< SWEEP_001.yaml
  Config config;     ///< base, the run's parameters, sweep_name and run.name; checked
};

/// The runs of `sweep` over `base`. Throws Error where a run's configuration is not valid.
std::vector<SweepRun> sweep_runs(const Config& base, const Sweep& sweep);

/// The manifest: tab-separated, a header (run, config, one column per parameter) and a line per run.
std::string manifest(const Sweep& sweep, const std::vector<SweepRun>& runs);

/// Writes the configurations and manifest.tsv into `folder` (made if need be) and returns the paths of the
/// configurations. The manifest comes last. Throws Error where the folder holds another sweep, unless `replace`: then
/// the configurations that its manifest lists are removed first.
std::vector<std::string> write_sweep(const Sweep& sweep, const std::vector<SweepRun>& runs, const std::string& folder,
                                     bool replace);

}  // namespace zs::config
