// SPDX-License-Identifier: Apache-2.0
#include "comparison/answer.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "checkpoints/read.hpp"
#include "probe/answer.hpp"
#include "rollout/answer.hpp"

namespace zs::comparison {

std::string reasons_text(const std::vector<std::string>& reasons) { return some_of(reasons, 5, "; ", "; and "); }

Answer compare_states(const std::string& a, const std::string& b, const compare::Tolerance& tolerance,
                      const state::Names& names, state::Extent extent) {
  const checkpoints::State left = checkpoints::read(a), right = checkpoints::read(b);
  state::Difference found = state::diff(left, right, tolerance, names, extent);
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

void add(Answer& into, const std::string& checkpoint, const Answer& found) {
  std::vector<std::string> equal;
  for (const auto& [key, value] : found.lines) {
    if (value.starts_with("equal: ")) equal.push_back(key + " " + value.substr(7));
  }
  const bool all = found.verdict == compare::Verdict::exact && !equal.empty();
  into.lines.emplace_back(checkpoint,
                          std::string(compare::name(found.verdict)) + (all ? ": " + joined(equal, "; ") : ""));
  for (const auto& [key, value] : found.lines) {
    const bool said =
        key == "verdict" || key.starts_with("layout_") || value.starts_with("equal: ") || value == "not compared";
    if (!said && (key == "not compared" || !compare::equal(found.verdict)))
      into.lines.emplace_back(checkpoint + " " + key, value);
  }
  if (!all && !equal.empty()) into.lines.emplace_back(checkpoint + " equal", joined(equal, "; "));
}

Answer compare_recordings(const std::string& a, const std::string& b, const compare::Tolerance& tolerance,
                          std::int64_t after, const std::string& floor) {
  if (const bool first = rollout::of_generator(a); first != rollout::of_generator(b)) {
    rollout::Answer weights = rollout::compare_weights(first ? b : a, first ? a : b);
    return {.verdict = weights.verdict, .lines = std::move(weights.lines)};
  }
  probe::Answer found = probe::compare(a, b, tolerance, after, floor);
  return {.verdict = found.verdict, .lines = std::move(found.lines)};
}

}  // namespace zs::comparison
