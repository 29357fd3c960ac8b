// SPDX-License-Identifier: Apache-2.0
#include "experiment/probes.hpp"

#include <algorithm>
#include <utility>

#include "compare/verdict.hpp"
#include "input/kind.hpp"
#include "probe/answer.hpp"
#include "probe/checks.hpp"

namespace zs::experiment {
namespace {

std::string names(const std::vector<std::string>& all) {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) text += (i == 0 ? "" : i + 1 == all.size() ? " and " : ", ") + all[i];
  return text + (all.size() == 1 ? " is" : " are");
}

}  // namespace

registry::Fields compare_probes(const Experiment& experiment, const std::vector<State>& states) {
  const auto folder = [](const Cell& cell) { return cell.run() + "/probe"; };
  const Cell* first = nullptr;
  std::vector<std::string> exact, rounding, other;
  compare::Verdict worst = compare::Verdict::exact;
  std::string worst_name;
  const auto worsen = [&](compare::Verdict verdict, std::string_view name) {
    if (!worst_name.empty() && verdict <= worst) return;
    worst = verdict, worst_name = name;
  };
  std::size_t consistent = 0;
  const auto alone = [&](const std::string& name, const std::string& probe) {
    try {
      const probe::Answer answer = probe::check(probe);
      consistent += answer.verdict == compare::Verdict::exact;
      if (answer.verdict != compare::Verdict::different) return;
      worsen(answer.verdict, compare::name(answer.verdict));
      other.push_back(name + " is " + std::string(compare::consistency(answer.verdict)) + " in itself (" +
                      answer.sentence() + ")");
    } catch (const std::exception&) {  // the comparison says why it cannot be read
    }
  };
  for (std::size_t i = 0; i < experiment.cells.size(); ++i) {
    const Cell& cell = experiment.cells[i];
    if (cell.run().empty() || states[i].state != RunState::complete) continue;
    if (!input::is(folder(cell), input::Kind::probe)) continue;
    alone(cell.name, folder(cell));
    if (!first) {
      first = &cell;
      continue;
    }
    try {
      const probe::Answer answer = probe::compare(folder(*first), folder(cell), {});
      worsen(answer.verdict, compare::name(answer.verdict));
      if (answer.verdict == compare::Verdict::exact) {
        exact.push_back(cell.name);
      } else if (answer.verdict == compare::Verdict::rounding) {
        rounding.push_back(cell.name);
      } else {
        other.push_back(cell.name + " is " + std::string(compare::name(answer.verdict)) + " (" + answer.sentence() +
                        ")");
      }
    } catch (const std::exception& error) {
      worsen(compare::Verdict::failed, "FAILED");
      other.push_back(cell.name + " is FAILED (" + error.what() + ")");
    }
  }
  if (worst_name.empty()) {
    if (!first || consistent == 0) return {};
    return {{"probe_comparison", "The recording of " + first->name + " is consistent in itself"},
            {"probe_verdict", "consistent"}};
  }
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  for (const std::string& part : other) add(part);
  if (!exact.empty()) add(names(exact) + " equal to the bit");
  if (!rounding.empty()) add(names(rounding) + " equal up to rounding");
  return {{"probe_comparison", "Gradients, updates and parameters, step by step beside " + first->name + "'s: " + text},
          {"probe_verdict", worst_name}};
}

}  // namespace zs::experiment
