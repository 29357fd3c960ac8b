// SPDX-License-Identifier: Apache-2.0
#include "verify/answer.hpp"

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/number.hpp"
#include "compare/content.hpp"
#include "compare/probes.hpp"

namespace zs::verify {
namespace {

namespace fs = std::filesystem;
using compare::Tensors;

constexpr const char* kMoments = "accelerator_states";
constexpr const char* kGradients = "gradients.pt";

std::string counted(std::int64_t number, const std::string& thing) {
  return to_text(number) + " " + thing + (number == 1 ? "" : "s");
}

Tensors one_file(const std::string& a, const std::string& b, const compare::Tolerance& tolerance) {
  const compare::Contents held = compare::contents(a, b);
  return compare::tensors(held.a, held.b, a, b, tolerance);
}

/// "equal: 16 tensors, 12345 elements", "different: 3 of 12345 elements, in 1 of 16 tensors; ...".
std::string summary(const Tensors& found) {
  if (found.differing == 0 && found.unlike.empty()) {
    if (found.tensors == 0) return "equal: " + counted(found.values, "value");
    return "equal: " + counted(found.tensors, "tensor") + ", " + counted(found.elements, "element");
  }
  if (found.tensors == 0) return "different: " + joined(found.unlike);
  std::string text = found.verdict == compare::Verdict::within ? "within tolerance: " : "different: ";
  text += to_text(found.differing) + " of " + counted(found.elements, "element") + ", in " +
          to_text(found.tensors_differing) + " of " + counted(found.tensors, "tensor");
  if (found.verdict != compare::Verdict::within && found.refused < found.differing)
    text += "; " + to_text(found.refused) + " beyond the tolerance";
  if (found.largest.ulp > 0 && found.largest.ulp != compare::kNoDistance)
    text += "; at most " + to_text(found.largest.ulp) + " ulp, at " + found.largest_at;
  return found.unlike.empty() ? text : text + "; " + joined(found.unlike);
}

void tell_first(const FileResult& file, Answer& answer) {
  const auto add = [&](const char* key, const std::string& value) { answer.lines.emplace_back(key, value); };
  if (!file.name.empty()) add("tensors_in", file.name);
  if (!file.found.first) return add("tensors", joined(file.found.unlike));
  const compare::Element& first = *file.found.first;
  add("tensor", first.tensor);
  add("index", to_text(first.index));
  add("place", first.place);
  add("value_a", first.a);
  add("value_a_hex", first.a_hex);
  add("value_b", first.b);
  add("value_b_hex", first.b_hex);
  add("value_difference", to_text(first.absolute));
  if (first.ulp > 0) add("value_ulp", compare::ulp_text(first.ulp));
}

}  // namespace

std::string joined(const std::vector<std::string>& reasons) {
  constexpr std::size_t kTold = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(kTold, reasons.size()); ++i) text += (i ? "; " : "") + reasons[i];
  if (reasons.size() > kTold) text += "; and " + std::to_string(reasons.size() - kTold) + " more";
  return text;
}

std::vector<FileResult> compare_folders(const std::string& a, const std::string& b, const std::string& label,
                                        const compare::Tolerance& tolerance, Answer& answer) {
  const auto left = compare::files_of(a), right = compare::files_of(b);
  const auto called = [&](const std::string& file) {
    const std::string name = file.empty()       ? "weights"
                             : file == kMoments ? "optimizer"
                                                : fs::path(file).filename().string();
    return label.empty() ? name : label + "/" + name;
  };
  std::vector<FileResult> results;
  for (const std::string& file : left) {
    if (std::find(right.begin(), right.end(), file) == right.end()) {
      answer.lines.emplace_back(called(file), "only in " + a);
      continue;
    }
    const std::string path_a = a + (file.empty() ? "" : "/" + file), path_b = b + (file.empty() ? "" : "/" + file);
    Tensors found = file == kMoments ? compare::parts(compare::optimizer_parts(path_a),
                                                      compare::optimizer_parts(path_b), a, b, tolerance)
                                     : one_file(path_a, path_b, tolerance);
    // The gradients of a step that was skipped are not finite; the weights tell whether it was.
    if (file == kGradients && found.verdict == compare::Verdict::failed && found.elements > 0)
      found.verdict = found.differing > 0 ? compare::Verdict::within : compare::Verdict::exact;
    results.push_back({called(file), std::move(found)});
  }
  for (const std::string& file : right) {
    if (std::find(left.begin(), left.end(), file) == left.end())
      answer.lines.emplace_back(called(file), "only in " + b);
  }
  return results;
}

void tell(const std::vector<FileResult>& files, Answer& answer) {
  using compare::Verdict;
  const auto found = std::find_if(files.begin(), files.end(),
                                  [](const FileResult& f) { return f.found.verdict == Verdict::different; });
  if (found != files.end()) tell_first(*found, answer);
  std::vector<std::string> wild;
  for (const FileResult& file : files) {
    answer.verdict = std::max(answer.verdict, file.found.verdict);
    answer.lines.emplace_back(file.name.empty() ? "tensors_compared" : file.name, summary(file.found));
    if (file.found.not_finite == 0) continue;
    const std::string where = file.name.empty() ? "" : " of " + file.name;
    wild.push_back(counted(file.found.not_finite, "element") + where + " not finite" +
                   (file.found.wild ? ", in both: " + file.found.wild->tensor + " " + file.found.wild->place + " is " +
                                          file.found.wild->a
                                    : ""));
  }
  if (!wild.empty()) answer.lines.emplace_back("not finite", joined(wild));
}

Answer compare_files(const std::string& a, const std::string& b, const compare::Tolerance& tolerance) {
  Answer answer;
  if (compare::holds_probe(a) != compare::holds_probe(b))
    throw UsageError("one of " + a + " and " + b + " is a record of zs_probe.py, the other is not: name two");
  if (compare::holds_probe(a)) {
    compare::ProbeAnswer found = compare::compare_probes(a, b, tolerance);
    answer.verdict = found.verdict;
    answer.lines = std::move(found.lines);
    return answer;
  }
  std::vector<FileResult> results;
  if (fs::is_directory(a) && fs::is_directory(b)) {
    results = compare_folders(a, b, "", tolerance, answer);
    if (results.empty()) throw Error(a, 0, "has no file of tensors that " + b + " has too");
  } else {
    results.push_back({"", one_file(a, b, tolerance)});
  }
  std::vector<std::pair<std::string, std::string>> notes;
  notes.swap(answer.lines);
  tell(results, answer);
  answer.lines.insert(answer.lines.begin(), {"verdict", std::string(compare::name(answer.verdict))});
  answer.lines.insert(answer.lines.end(), notes.begin(), notes.end());
  return answer;
}

}  // namespace zs::verify
