// SPDX-License-Identifier: Apache-2.0
// The check of the norm and of its bound of clipping.
#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "base/words.hpp"
#include "probe/bounds.hpp"
#include "probe/causes.hpp"
#include "probe/judges.hpp"

namespace zs::probe {
namespace {

/// The only rank that holds a tensor, such as an expert's; -1: several ranks hold it.
int sole_rank(const Tensor& tensor) {
  if (tensor.copies > 0 || tensor.pieces.empty()) return -1;
  const int rank = tensor.pieces.front().rank;
  return std::ranges::all_of(tensor.pieces, [&](const auto& piece) { return piece.rank == rank; }) ? rank : -1;
}

/// Sums of squares of the gradients that only one rank holds: all of them, and those with one ending.
std::map<std::string, double> kept_apart(const Step& step) {
  std::map<std::string, double> found;
  for (const auto& [name, tensor] : step.tensors.all()) {
    const int rank = name.starts_with("grad/") ? sole_rank(tensor) : -1;
    if (rank < 0) continue;
    const std::string alone = " of rank " + std::to_string(rank) + " alone", parameter = parameter_of(name);
    const std::size_t last = parameter.rfind('.'),
                      ending = last == std::string::npos ? last : parameter.rfind('.', last - 1);
    found["the parameters" + alone] += tensor.squares;
    if (ending != std::string::npos) found["the " + parameter.substr(ending + 1) + alone] += tensor.squares;
  }
  return found;
}

}  // namespace

void judge_norm(const Run& run, Tally& tally, const Moment& now) {
  const auto told = now.step.scalars.find("norm");
  if (now.step.scalars.contains("clips"))
    tally.note(
        "a part of the gradients was clipped, or by another norm than the square root of the sum of squares: not "
        "checked");
  if (told == now.step.scalars.end() || !std::isfinite(told->second)) return;
  double squares = 0, largest = 0;
  bool unknown = false;
  std::string dtype;
  std::vector<std::pair<std::string, double>> gradients;
  for (const auto& [name, tensor] : now.step.tensors.all()) {
    if (name.starts_with("direction/")) unknown = true, squares += tensor.squares;
    if (!name.starts_with("grad/")) continue;
    if (tensor.summands)
      return tally.lacks("ranks hold terms of the gradient of " + parameter_of(name) +
                         ", which is Partial: the norm of their sum is not known");
    squares += tensor.squares;
    largest = std::max(largest, static_cast<double>(tensor.total));
    dtype = coarser(dtype, tensor.dtype);
    gradients.emplace_back(parameter_of(name), tensor.squares);
  }
  if (unknown) {
    const double bound = value_of(now.step.scalars, "clip", 0);
    if (bound > 0 && told->second > bound && close_to(std::sqrt(squares), bound, 1e-3))
      return tally.breach({now.number, "norm",
                           "Muon's directions have together the norm of the bound of clipping, " + to_text(bound) +
                               ": they are clipped, and not the gradients",
                           1, 1e-3});
    if (!close_to(told->second, std::sqrt(squares), 1e-3))
      return tally.lacks("Muon's directions replace gradients, whose norm is not known");
    tally.note("the norm that is told is that of Muon's directions, which replace gradients");
    return tally.holds();
  }
  if (gradients.empty() || !std::isfinite(squares)) return;
  const double factor = clip_factor(now.step).value_or(1);
  const double expected = told->second * factor, found = std::sqrt(squares);
  // On processors PyTorch adds a tensor's squares one after another in float32. In 16 bits it rounds each tensor's
  // norm, then that of all, which is in 16 bits then, and the factor of clipping.
  const bool total = run.ranks > 1 || rounded_to(told->second, dtype) == told->second;
  const double most = dtype == "BF16" || dtype == "F16" ? (!total       ? 4e-3
                                                           : factor < 1 ? 12e-3
                                                                        : 8e-3)
                                                        : std::clamp(5e-10 * largest, 2e-5, 1e-3);
  if (close_to(expected, found, most)) {
    tally.holds();
    return;
  }
  if (found < expected && now.step.scalars.contains("clip_value"))
    return tally.lacks("of gradients that are clipped by value after their norm was measured, the norm is not known");
  const double whole = factor > 0 ? found / factor : found;  // before clipping
  const double more = told->second * told->second - whole * whole;
  std::string text =
      "norm of gradients before clipping " + to_rounded_text(whole, 6) + ", " + to_text(told->second) + " is told: ";
  std::string by;
  if (factor < 1 && close_to(found, told->second, most)) {
    text = "gradients are not clipped: their norm is " + to_rounded_text(found, 6) + ", the bound " +
           to_text(now.step.scalars.at("clip"));
    by = " ";
  }
  std::vector<std::string> likely;  // parameters of the same norm are rivals
  for (const auto& [parameter, square] : gradients) {
    const double mine = square / (factor * factor);
    if (by.empty() && mine > 1e-4 * whole * whole && close_to(std::fabs(more), mine, 1e-3)) likely.push_back(parameter);
  }
  if (!likely.empty()) by = joined(likely, " or ") + (more > 0 ? " counts twice" : " is left out");
  for (const auto& [what, square] : by.empty() ? kept_apart(now.step) : std::map<std::string, double>()) {
    if (close_to(std::fabs(more), square / (factor * factor), 1e-3)) likely.push_back(what);
  }
  if (by.empty() && !likely.empty()) by = joined(likely, " or ") + (more > 0 ? " count twice" : " are left out");
  // The parameters that only one rank holds: a stage, or the rank's experts. Each rank's norm of these, and their mean.
  std::map<int, double> of_ranks, sole;
  double shared = 0;
  for (const auto& [name, tensor] : now.step.tensors.all()) {
    if (!name.starts_with("grad/")) continue;
    if (tensor.copies > 0) shared += tensor.squares / (factor * factor);
    for (const Tensor::Piece& piece : tensor.pieces) {
      of_ranks[piece.rank] += piece.squares / (factor * factor);
      if (tensor.copies == 0) sole[piece.rank] += piece.squares / (factor * factor);
    }
  }
  double mean = 0;
  for (const auto& [rank, square] : sole) mean += std::sqrt(shared + square) / static_cast<double>(sole.size());
  for (const auto& [rank, square] : of_ranks) {
    if (by.empty() && of_ranks.size() > 1 && close_to(told->second, std::sqrt(square), 1e-4) &&
        !close_to(told->second, mean, 1e-6))
      by = "that of the parameters of rank " + std::to_string(rank) + " alone";
  }
  if (by.empty() && sole.size() > 1 && close_to(told->second, mean, 1e-4))
    by = "the mean of the ranks' norms, each with what it alone holds";
  if (by.empty()) {
    Causes sizes, causes;
    sizes.ranks(run, now.step), sizes.micro_batches(run, now.step);
    for (const auto& [name, value] : sizes.all())
      causes.add("square root of " + name, std::sqrt(value)), causes.add(name, value);
    by = factor_text(told->second / whole, causes.all(), 1e-3);
  }
  if (by == " ") by.clear();
  tally.breach({now.number, "norm", text + by, std::fabs(expected / found - 1), most});
}

}  // namespace zs::probe
