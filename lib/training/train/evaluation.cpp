// SPDX-License-Identifier: Apache-2.0
#include "train/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "base/number.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "train/logits.hpp"

namespace zs::train {
namespace {

const char* name(Part part) { return part == Part::validation ? "validation" : "test"; }

/// Counts the samples of a micro-batch.
void count(const at::Tensor& logits, const at::Tensor& targets, std::vector<Count>& classes) {
  const at::Tensor logits_BL = logits.to(at::kCPU, at::kFloat).contiguous(),
                   targets_B = targets.to(at::kCPU).contiguous();
  const std::int64_t L = logits_BL.size(1);
  for (std::int64_t i = 0; i < logits_BL.size(0); ++i) {
    const float* const row = logits_BL.data_ptr<float>() + i * L;
    const std::int64_t label = targets_B.data_ptr<std::int64_t>()[i];
    // The number of logits before it in the order; a NaN comes before all, so that a broken model is never right.
    std::int64_t before = 0;
    for (std::int64_t other = 0; other < L; ++other) {
      const bool less = row[other] < row[label] || (row[other] == row[label] && other > label);
      before += other != label && !less;
    }
    if (std::isnan(row[label])) before = L;
    Count& of_class = classes[static_cast<std::size_t>(label)];
    ++of_class.samples;
    of_class.best += before < 1;
    of_class.best_five += before < 5;
  }
}

}  // namespace

Count Evaluation::all() const {
  Count sum;
  for (const Count& each : classes) {
    sum.samples += each.samples;
    sum.best += each.best;
    sum.best_five += each.best_five;
  }
  return sum;
}

Evaluation evaluate(comm::Group& group, zero::Engine& engine, Batches& batches, Part part, const std::string& dump) {
  const std::size_t labels = batches.labels();
  Evaluation evaluation{0, std::vector<Count>(labels)};
  std::optional<Logits> logits;
  if (!dump.empty()) logits.emplace(group, dump);
  const auto seen = [&](std::int64_t leaf, const unit::Batch& batch, const at::Tensor& of) {
    if (labels > 0) count(of, batch.targets, evaluation.classes);
    if (logits) logits->add(leaf, batch, of);
  };
  evaluation.loss = engine.evaluate(
      batches.micro_batches(part), [&](std::int64_t leaf) { return batches.held_out(part, leaf); },
      labels > 0 || logits ? zero::LogitsSeen(seen) : zero::LogitsSeen());
  if (labels > 0) {
    const std::vector<Count> mine = std::exchange(evaluation.classes, std::vector<Count>(labels));
    for (const std::vector<Count>& other :
         group.all_gather(std::span<const Count>(mine), "exchange of what was counted")) {
      for (std::size_t i = 0; i < labels; ++i) {
        evaluation.classes[i].samples += other[i].samples;
        evaluation.classes[i].best += other[i].best;
        evaluation.classes[i].best_five += other[i].best_five;
      }
    }
  }
  if (logits) logits->commit((part == Part::validation ? batches.data().validation : batches.data().test)->first());
  return evaluation;
}

std::vector<std::pair<std::string, std::string>> facts(const Evaluation& evaluation, Part part,
                                                       const std::vector<std::string>& labels) {
  const std::string lead = part == Part::validation ? "final_valid_" : "test_";
  std::vector<std::pair<std::string, std::string>> all = {{lead + "loss", to_text(evaluation.loss)}};
  if (evaluation.classes.empty()) {
    all.emplace_back(lead + "perplexity", to_text(std::exp(evaluation.loss)));
    return all;
  }
  all.emplace_back(lead + "accuracy", to_text(evaluation.accuracy()));
  if (evaluation.classes.size() > 5) all.emplace_back(lead + "accuracy_top5", to_text(evaluation.accuracy_of_five()));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Count& its = evaluation.classes[i];
    if (its.samples > 0)
      all.emplace_back("class_accuracy." + labels[i], to_text(Evaluation::share(its.best, its.samples)));
  }
  return all;
}

std::vector<std::string> lines(const Evaluation& evaluation, Part part, const std::vector<std::string>& labels) {
  std::string first = std::string(name(part)) + ": loss: " + to_plain_text(evaluation.loss);
  if (evaluation.classes.empty()) return {first + " perplexity: " + to_plain_text(std::exp(evaluation.loss))};
  first += " accuracy: " + to_plain_text(evaluation.accuracy());
  if (evaluation.classes.size() > 5) first += " accuracy_top5: " + to_plain_text(evaluation.accuracy_of_five());
  std::vector<std::string> all = {first};
  std::vector<std::size_t> order(labels.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto accuracy = [&](std::size_t i) {
    return Evaluation::share(evaluation.classes[i].best, evaluation.classes[i].samples);
  };
  std::erase_if(order, [&](std::size_t i) { return evaluation.classes[i].samples == 0; });
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return accuracy(a) < accuracy(b); });
  for (const std::size_t i : order) {
    all.push_back("class " + printable(labels[i]) + ": accuracy: " + to_rounded_text(accuracy(i), 4) + " (" +
                  to_text(evaluation.classes[i].best) + " of " + to_text(evaluation.classes[i].samples) + ")");
  }
  return all;
}

}  // namespace zs::train
