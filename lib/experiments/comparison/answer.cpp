// SPDX-License-Identifier: Apache-2.0
#include "comparison/answer.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "compare/content.hpp"
#include "compare/probe_file.hpp"
#include "compare/probes.hpp"
#include "probe/answer.hpp"
#include "probefile/read.hpp"
#include "state/read.hpp"
#include "state/sums.hpp"

namespace zs::comparison {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMoments = "accelerator_states";
constexpr const char* kGradients = "gradients.pt";

compare::Tensors one_file(const std::string& a, const std::string& b, const compare::Tolerance& tolerance,
                          bool skipped = false) {
  return compare::tensors(compare::contents(a, b), a, b, tolerance, skipped);
}

/// Whether the optimizer has skipped a step of a checkpoint's training: its gradients need not be finite then.
bool has_skipped(const std::string& checkpoint) {
  const std::string path = checkpoint + "/" + kMoments + "/state.json";
  if (std::error_code ignored; !fs::exists(path, ignored)) return false;
  const auto state = nlohmann::json::parse(Input(path).read_all(), nullptr, false);
  const nlohmann::json::json_pointer count("/loss_scaler/skipped");
  return !state.is_discarded() && state.contains(count) && state[count].is_number() && state[count] > 0;
}

/// Throws Error if the folder has checksums, and a file
/// is damaged, missing or, if it is compared, not listed.
void require_undamaged(const std::string& folder) {
  if (std::error_code ignored; !fs::exists(folder + "/SHA256SUMS", ignored)) return;
  for (const auto& [file, digest] : state::require_files(folder)) state::require_sum(folder, file, digest);
}

/// "equal: 16 tensors, 12345 elements", "different: 3 of 12345 elements, in 1 of 16 tensors; ...".
std::string summary(const compare::Tensors& found) {
  if (found.differing == 0 && found.unlike.empty()) {
    const std::string lacking = found.lacking.empty() ? "" : "; " + reasons_text(found.lacking);
    if (found.tensors == 0) return "equal: " + counted(found.values, "value") + lacking;
    return "equal: " + counted(found.tensors, "tensor") + ", " + counted(found.elements, "element") + lacking;
  }
  if (found.tensors == 0) return "different: " + reasons_text(found.unlike);
  std::string text = found.verdict == compare::Verdict::within ? "within tolerance: " : "different: ";
  text += to_text(found.differing) + " of " + counted(found.elements, "element") + ", in " +
          to_text(found.tensors_differing) + " of " + counted(found.tensors, "tensor");
  if (found.verdict != compare::Verdict::within && found.refused < found.differing)
    text += "; " + to_text(found.refused) + " beyond the tolerance";
  if (found.largest.ulp > 0 && found.largest.ulp != compare::kNoDistance)
    text += "; at most " + to_text(found.largest.ulp) + " ulp, at " + found.largest_at;
  return found.unlike.empty() ? text : text + "; " + reasons_text(found.unlike);
}

void tell_first(const FileResult& file, Answer& answer) {
  const auto add = [&](const char* key, const std::string& value) { answer.lines.emplace_back(key, value); };
  if (!file.name.empty()) add("tensors_in", file.name);
  if (!file.found.first) return add("tensors", reasons_text(file.found.unlike));
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

std::string reasons_text(const std::vector<std::string>& reasons) { return some_of(reasons, 5, "; ", "; and "); }

std::string undecided(const Folders& folders) {
  std::vector<std::string> reasons = folders.only;
  for (const FileResult& file : folders.files)
    reasons.insert(reasons.end(), file.found.lacking.begin(), file.found.lacking.end());
  return reasons_text(reasons) + "; name two files to compare these alone";
}

void Folders::join(Folders other) {
  std::move(other.files.begin(), other.files.end(), std::back_inserter(files));
  std::move(other.only.begin(), other.only.end(), std::back_inserter(only));
  for (const auto& [file, count] : other.a.counts()) a.add(file, count);
  for (const auto& [file, count] : other.b.counts()) b.add(file, count);
}

Folders compare_folders(const std::string& a, const std::string& b, const std::string& label,
                        const compare::Tolerance& tolerance, Answer& notes) {
  for (const std::string& folder : {a, b}) require_undamaged(folder);
  const auto left = compare::files_of(a), right = compare::files_of(b);
  const auto called = [&](const std::string& file) {
    const std::string name = file.empty()       ? "weights"
                             : file == kMoments ? "optimizer"
                                                : fs::path(file).filename().string();
    return label.empty() ? name : label + "/" + name;
  };
  Folders folders;
  for (const std::string& file : left) folders.a.add(called(file));
  for (const std::string& file : right) folders.b.add(called(file));
  const auto only = [&](const std::string& file, const std::string& where) {
    folders.only.push_back(called(file) + " is only in " + where);
    notes.lines.emplace_back(called(file), "only in " + where);
  };
  const bool skipped = has_skipped(a) && has_skipped(b);
  for (const std::string& file : left) {
    if (std::find(right.begin(), right.end(), file) == right.end()) {
      only(file, a);
      continue;
    }
    const std::string path_a = a + (file.empty() ? "" : "/" + file), path_b = b + (file.empty() ? "" : "/" + file);
    compare::Tensors found = file == kMoments ? compare::parts(compare::optimizer_parts(path_a),
                                                               compare::optimizer_parts(path_b), a, b, tolerance)
                                              : one_file(path_a, path_b, tolerance, skipped && file == kGradients);
    folders.files.push_back({called(file), std::move(found)});
  }
  for (const std::string& file : right) {
    if (std::find(left.begin(), left.end(), file) == left.end()) only(file, b);
  }
  std::set<std::string> others;
  for (const std::string& folder : {a, b}) {
    for (const std::string& name : compare::others_of(folder)) others.insert(label.empty() ? name : label + "/" + name);
  }
  if (!others.empty()) notes.lines.emplace_back("not compared", reasons_text({others.begin(), others.end()}));
  return folders;
}

void tell(const std::vector<FileResult>& files, Answer& answer) {
  using compare::Verdict;
  const auto found = std::find_if(files.begin(), files.end(),
                                  [](const FileResult& f) { return f.found.verdict == Verdict::different; });
  if (found != files.end()) tell_first(*found, answer);
  std::vector<std::string> non_finite;
  for (const FileResult& file : files) {
    answer.lines.emplace_back(file.name.empty() ? "tensors_compared" : file.name, summary(file.found));
    if (file.found.not_finite == 0) continue;
    const std::string where = file.name.empty() ? "" : " of " + file.name;
    non_finite.push_back(counted(file.found.not_finite, "element") + where + " not finite" +
                         (file.found.non_finite ? ", in both: " + file.found.non_finite->tensor + " " +
                                                      file.found.non_finite->place + " is " + file.found.non_finite->a
                                                : ""));
  }
  if (!non_finite.empty()) answer.lines.emplace_back("not finite", reasons_text(non_finite));
}

Answer compare_states(const std::string& a, const std::string& b, const compare::Tolerance& tolerance,
                      const state::Names& names) {
  state::Difference found = state::diff(state::read(a), state::read(b), tolerance, names);
  Answer answer;
  answer.verdict = found.verdict;
  for (auto& [key, value] : found.lines) {  // "only in A" is reported for each kind
    const auto said = std::ranges::find(answer.lines, key, [](const auto& line) { return line.first; });
    if (said == answer.lines.end())
      answer.lines.emplace_back(key, value);
    else
      said->second += "; " + value;
  }
  for (const state::Compared& kind : found.kinds) {
    const bool whole = kind.differing == 0;
    std::string text = whole                                       ? "equal: "
                       : found.verdict == compare::Verdict::within ? "within tolerance: "
                                                                   : "different: ";
    if (!whole) text += to_text(kind.differing) + " of ";
    text += kind.tensors ? counted(kind.elements, "element") + ", in " + counted(kind.compared, "tensor")
                         : counted(kind.compared, "value");
    answer.lines.emplace_back(kind.kind, kind.compared == 0 ? "not compared" : text);
  }
  return answer;
}

Answer compare_files(const std::string& a, const std::string& b, const compare::Tolerance& tolerance,
                     std::int64_t after, const std::string& floor) {
  Answer answer;
  if (compare::holds_probe(a) != compare::holds_probe(b))
    throw UsageError("one of " + a + " and " + b + " is a record of zs_probe, the other is not: name two");
  if (probefile::version(a) == 2 && probefile::version(b) == 2) {
    probe::Answer found = probe::compare(a, b, tolerance, after, floor);
    answer.verdict = found.verdict;
    answer.lines = std::move(found.lines);
    return answer;
  }
  if (compare::holds_probe(a)) {
    compare::ProbeAnswer found = compare::compare_probes(a, b, tolerance, after);
    answer.verdict = found.verdict;
    answer.lines = std::move(found.lines);
    return answer;
  }
  Folders folders;
  if (fs::is_directory(a) && fs::is_directory(b)) {
    folders = compare_folders(a, b, "", tolerance, answer);
    if (folders.files.empty()) throw Error(a, 0, "has no file of tensors that " + b + " has too");
  } else {
    folders.files.push_back({"", one_file(a, b, tolerance)});
    folders.a.add(""), folders.b.add("");
  }
  std::vector<std::pair<std::string, std::string>> notes;
  notes.swap(answer.lines);
  tell(folders.files, answer);
  compare::Ledger ledger(folders.a, folders.b);
  for (const FileResult& file : folders.files) ledger.compared(file.name, file.found.verdict);
  answer.verdict = ledger.settle();
  std::vector<std::pair<std::string, std::string>> head = {{"verdict", std::string(compare::name(answer.verdict))}};
  if (answer.verdict == compare::Verdict::inconclusive) head.emplace_back("reason", undecided(folders));
  answer.lines.insert(answer.lines.begin(), head.begin(), head.end());
  answer.lines.insert(answer.lines.end(), notes.begin(), notes.end());
  return answer;
}

}  // namespace zs::comparison
