// SPDX-License-Identifier: Apache-2.0
// An experiment: trainings beside one another, and the results folder that tells of them in metadata.json.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiment/state.hpp"
#include "registry/record.hpp"

namespace zs::experiment {

/// One training of an experiment: a condition of a batch, a cell of a sweep, a run of a comparison of revisions.
struct Cell {
  std::string name;                      ///< names its log, NAME.log
  std::vector<std::string> arguments{};  ///< the words after "zs-train", secrets withheld
  registry::Fields fields{};             ///< "command", "run", "exit_code", "seconds", "digest", ...

  /// The folder of its run in a registry; "" where it is none of a registry.
  std::string run() const;
  bool ended() const { return !registry::value(fields, "exit_code").empty(); }
};

/// What metadata.json says. A field "a.b" is the member b of an object a there; a field without a value is null.
struct Experiment {
  std::string folder;  ///< the results folder, absolute
  registry::Fields fields{};
  std::vector<Cell> cells{};

  /// Whether `folder` is the results folder of an experiment.
  static bool at(const std::string& folder);
  /// Throws Error, located, where it is none, or is damaged.
  static Experiment read(const std::string& folder);
  void write() const;

  /// The cell of that name. Throws Error naming the nearest where there is none.
  Cell& cell(const std::string& name);
  /// Cells that there are to be: a comparison of revisions adds them one by one.
  std::int64_t planned() const;
  /// "[3/6] z3_baseline": where the cell stands among those that there are to be.
  std::string label(const Cell& cell) const;
  /// How many cells have not ended, of those that there are to be.
  std::int64_t waiting() const;
  /// "3 of 6 have ended, the rest takes about 0:01:20"; without the time where elements of an array run beside one
  /// another.
  std::string progress() const;
  /// The cell's log, and the one that also tells what is needed to repeat the training.
  std::string log(const Cell& cell) const;
  std::string detailed_log(const Cell& cell) const;

  /// Finds out what has become of every cell: fields found.state, found.basis, ... The states, by cell.
  std::vector<State> judge();
};

/// Nobody else who asks for the lock changes the experiment in `folder`, from the constructor to the destructor.
class Lock {
 public:
  explicit Lock(const std::string& folder);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int file_ = -1;
};

/// Adds to a file, or makes it. Throws Error.
void append(const std::string& path, const std::string& text);
/// Now, as "2026-11-21T22:40:35+0000".
std::string time_text();

}  // namespace zs::experiment
