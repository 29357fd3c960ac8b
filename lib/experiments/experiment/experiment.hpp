// SPDX-License-Identifier: Apache-2.0
// An experiment: trainings to be compared, and the results folder that describes them in metadata.json.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiment/state.hpp"
#include "registry/record.hpp"

namespace zs::experiment {

/// One training of an experiment: a condition of a batch, a cell of a sweep, a run of a comparison of revisions.
struct Cell {
  std::string name;                      ///< the name of its log, NAME.log
  std::vector<std::string> arguments{};  ///< the words after "zs-train", secrets withheld
  registry::Fields fields{};             ///< "command", "run", "exit_code", "seconds", "digest", ...

  /// The folder of its run in a registry; "" if it is in none.
  std::string run() const;
  bool ended() const { return !registry::value(fields, "exit_code").empty(); }
};

/// The content of metadata.json. A field "a.b" is the member b of an object a there; a field without a value is null.
struct Experiment {
  std::string folder;  ///< the results folder, absolute
  registry::Fields fields{};
  std::vector<Cell> cells{};

  /// Whether `folder` is the results folder of an experiment.
  static bool at(const std::string& folder);
  /// Throws Error, located, if it is none, or is damaged.
  static Experiment read(const std::string& folder);
  void write() const;

  /// The cell with that name. Throws Error with the nearest name if there is none.
  Cell& cell(const std::string& name);
  /// The planned number of cells: a comparison of revisions adds them one by one.
  std::int64_t planned() const;
  /// "[3/6] z3_baseline": the cell's position among the planned ones.
  std::string label(const Cell& cell) const;
  /// The number of planned cells that have not ended.
  std::int64_t waiting() const;
  /// "3 of 6 have ended, the rest takes about 0:01:20";
  /// without the time if elements of an array run in parallel.
  std::string progress() const;
  /// The cell's log, and the detailed log with everything needed to repeat the training.
  std::string log(const Cell& cell) const;
  std::string detailed_log(const Cell& cell) const;

  /// Determines the state of every cell: sets fields found.state, found.basis, ... Returns the states, by cell.
  std::vector<State> judge();
};

/// An exclusive lock on the experiment in `folder`, from the constructor to the destructor.
class Lock {
 public:
  explicit Lock(const std::string& folder);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int file_ = -1;
};

/// Appends to a file, or creates it. Throws Error.
void append(const std::string& path, const std::string& text);
/// The current time, as "2026-11-21T22:40:35+0000".
std::string time_text();

}  // namespace zs::experiment
