// SPDX-License-Identifier: Apache-2.0
// What zs-verify says of two things that were recorded: a word, and what belongs to it.
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
  std::vector<std::pair<std::string, std::string>> lines;  ///< "verdict", and what belongs to it, in order
  metric::Table columns{};  ///< of two runs, a row a column compared: column, rows, differing, abs, rel, ulp, known_to
};

/// The tensors of two folders (checkpoints, Hugging Face's) or two files, compared file by file.
struct FileResult {
  std::string name;  ///< "checkpoint_2/gradients.pt"
  compare::Tensors found;
};
/// The files of two folders: those that both have were compared, in the order in which a step makes them.
struct Folders {
  std::vector<FileResult> files;
  compare::Holdings a, b;           ///< the files that each side has
  std::vector<std::string> only{};  ///< "optimizer is only in runs/a"

  void join(Folders other);
};
/// `label` leads in the names of the results. Notes what was not compared. Throws zs::Error, located, where a file is
/// damaged or does not have the checksum that the folder's SHA256SUMS gives.
Folders compare_folders(const std::string& a, const std::string& b, const std::string& label,
                        const compare::Tolerance& tolerance, Answer& notes);

/// Two folders or files of tensors, or two probes, of which steps up to `after` are not compared. Throws zs::Error,
/// located, where there is nothing to compare.
/// `floor`: a probe that says what rounding may do to two probes, or "".
Answer compare_files(const std::string& a, const std::string& b, const compare::Tolerance& tolerance,
                     std::int64_t after = 0, const std::string& floor = "");

/// Two checkpoints of any layouts, as zs-checkpoint reads them: weights, masters, moments, steps, settings, schedules,
/// scalers and random states, by the names that `names` joins. Throws zs::Error, located, where one cannot be read.
Answer compare_states(const std::string& a, const std::string& b, const compare::Tolerance& tolerance,
                      const state::Names& names = {});

/// Adds the first element that differs, how many do, and a line a file.
void tell(const std::vector<FileResult>& files, Answer& answer);

/// What one side lacks, as one text.
std::string undecided(const Folders& folders);

/// "; also: " and so on: reasons as one text that does not grow without end.
std::string joined(const std::vector<std::string>& reasons);

}  // namespace zs::comparison
