// SPDX-License-Identifier: Apache-2.0
// The result of zs-verify for two recorded things: a verdict and its details.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "compare/ledger.hpp"
#include "compare/tensors.hpp"
#include "compare/verdict.hpp"
#include "metric/table.hpp"
#include "state/diff.hpp"

namespace zs::comparison {

struct Answer {
  compare::Settled verdict{};
  std::vector<std::pair<std::string, std::string>> lines;  ///< "verdict" and its details, in order
  metric::Table columns{};  ///< for two runs, a row per column: column, rows, differing, abs, rel, ulp, known_to
};

/// The result for two files of tensors in two folders (checkpoints, Hugging Face's), or for two files.
struct FileResult {
  std::string name;  ///< "checkpoint_2/gradients.pt"
  compare::Tensors found;
};
/// The files of two folders: those in both were compared, in the order in which a step computes them.
struct Folders {
  std::vector<FileResult> files;
  compare::Holdings a, b;           ///< the files of each side
  std::vector<std::string> only{};  ///< "optimizer is only in runs/a"

  void join(Folders other);
};
/// Names of the results begin with `label`. Adds notes about what was not compared. Throws zs::Error, located, if a
/// file is damaged or does not match its checksum in the folder's SHA256SUMS.
Folders compare_folders(const std::string& a, const std::string& b, const std::string& label,
                        const compare::Tolerance& tolerance, Answer& notes);

/// Compares two folders or files of tensors, or two probes, of which steps
/// up to `after` are skipped. Throws zs::Error, located, if there is nothing
/// to compare. `floor`: a probe that shows the effect of rounding, or "".
Answer compare_files(const std::string& a, const std::string& b, const compare::Tolerance& tolerance,
                     std::int64_t after = 0, const std::string& floor = "");

/// Compares two checkpoints of any layouts, as zs-checkpoint reads them: weights, masters, moments, steps, settings,
/// schedules, scalers and random states, with names matched by `names`. Throws zs::Error, located.
Answer compare_states(const std::string& a, const std::string& b, const compare::Tolerance& tolerance,
                      const state::Names& names = {});

/// Adds the first element that differs, the number of such elements, and a line per file.
void tell(const std::vector<FileResult>& files, Answer& answer);

/// The things that only one side has, as one text.
std::string undecided(const Folders& folders);

/// "; also: " and so on: joins reasons into a text of limited length.
std::string reasons_text(const std::vector<std::string>& reasons);

}  // namespace zs::comparison
