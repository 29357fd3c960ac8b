// SPDX-License-Identifier: Apache-2.0
// What zs-verify says of two things that were recorded: a word, and what belongs to it.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "compare/tensors.hpp"
#include "compare/verdict.hpp"
#include "metric/table.hpp"

namespace zs::verify {

struct Answer {
  compare::Verdict verdict = compare::Verdict::exact;
  std::vector<std::pair<std::string, std::string>> lines;  ///< "verdict", and what belongs to it, in order
  metric::Table columns{};  ///< of two runs, a row a column compared: column, rows, differing, abs, rel, ulp, known_to
};

/// The tensors of two folders (checkpoints, Hugging Face's) or two files, compared file by file.
struct FileResult {
  std::string name;  ///< "checkpoint_2/gradients.pt"
  compare::Tensors found;
};
/// The files that both folders have, in the order in which a step makes them: gradients, weights, optimizer states.
/// What only one of them has goes to `notes`. `label` leads in the names of the results.
std::vector<FileResult> compare_folders(const std::string& a, const std::string& b, const std::string& label,
                                        const compare::Tolerance& tolerance, Answer& answer);

/// Two folders or files of tensors. Throws zs::Error, located, where there is nothing to compare.
Answer compare_files(const std::string& a, const std::string& b, const compare::Tolerance& tolerance);

/// Adds the first element that differs, how many do, and a line a file, and joins the verdicts.
void tell(const std::vector<FileResult>& files, Answer& answer);

/// "; also: " and so on: reasons as one text that does not grow without end.
std::string joined(const std::vector<std::string>& reasons);

}  // namespace zs::verify
