// SPDX-License-Identifier: Apache-2.0
#include "train/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/group.hpp"
#include "h5/image.hpp"
#include "unit/unit.hpp"

namespace zs::train {
namespace {

// Writes the logits of an evaluation to a file, for comparisons.

/// Gathers the results of the ranks into an HDF5 file: float32 `logits`, [samples, tokens, vocabulary] or [samples,
/// labels], int64 `targets`, and of texts int64 `input_ids`, [samples, tokens], and int64 `sample`, [samples], in the
/// order of the samples. Kept in memory until commit().
class Logits {
 public:
  Logits(comm::Group& group, const std::string& path) : group_(group), path_(path) {}
  /// Adds a leaf's logits, on the rank that computed it. Throws zs::Error if they need too much memory.
  void add(std::int64_t leaf, const unit::Batch& batch, const at::Tensor& logits);
  /// Writes the file; the first sample has the number `first` in the data. Throws comm::SharedError. COLLECTIVE.
  void commit(std::int64_t first);

 private:
  struct Leaf {
    at::Tensor logits, targets, inputs;
  };
  comm::Group& group_;
  std::string path_;
  std::map<std::int64_t, Leaf> leaves_;
  std::uint64_t bytes_ = 0;  // of all ranks, approximately
};

struct Header {
  std::int64_t leaf, logits, targets, inputs;  // elements
};

/// Values of a tensor at the end of `to`.
template <typename T>
void append(std::vector<T>& to, const char* from, std::int64_t count) {
  const std::size_t before = to.size();
  to.resize(before + static_cast<std::size_t>(count));
  std::memcpy(to.data() + before, from, static_cast<std::size_t>(count) * sizeof(T));
}

void Logits::add(std::int64_t leaf, const unit::Batch& batch, const at::Tensor& logits) {
  Leaf& kept = leaves_[leaf];
  const bool texts = batch.inputs.scalar_type() == at::kLong;
  kept = {logits.to(at::kCPU, at::kFloat).contiguous(), batch.targets.to(at::kCPU).contiguous(),
          texts ? batch.inputs.to(at::kCPU).contiguous() : at::empty({0}, at::kLong)};
  bytes_ += kept.logits.nbytes() * static_cast<std::size_t>(group_.size());
  if (bytes_ > most_in_memory())
    throw Error(
        path_, 0,
        "the logits are more than " + to_bytes_text(static_cast<double>(most_in_memory())) +
            ", a quarter of this machine's memory: evaluate less (--validation_fraction, --dataset_percentage)");
}

void Logits::commit(std::int64_t first) {
  std::string mine;
  std::vector<std::int64_t> shape, target_shape, input_shape;
  for (const auto& [leaf, kept] : leaves_) {
    shape = kept.logits.sizes().vec();
    target_shape = kept.targets.sizes().vec(), input_shape = kept.inputs.sizes().vec();
    const Header header{leaf, kept.logits.numel(), kept.targets.numel(), kept.inputs.numel()};
    mine.append(reinterpret_cast<const char*>(&header), sizeof header);
    mine.append(static_cast<const char*>(kept.logits.data_ptr()), kept.logits.nbytes());
    mine.append(static_cast<const char*>(kept.targets.data_ptr()), kept.targets.nbytes());
    mine.append(static_cast<const char*>(kept.inputs.data_ptr()), kept.inputs.nbytes());
  }
  const std::vector<std::string> packets = group_.all_gather_object(mine, "all-gather of the logits");
  comm::together(group_, "writing of " + path_, [&] {
    if (group_.rank() != 0) return;
    struct Place {
      const char* at;
      Header header;
    };
    std::map<std::int64_t, Place> places;
    for (const std::string& packet : packets) {
      for (std::size_t at = 0; at < packet.size();) {
        Header header{};
        std::memcpy(&header, packet.data() + at, sizeof header);
        at += sizeof header;
        places[header.leaf] = {packet.data() + at, header};
        at += static_cast<std::size_t>(header.logits) * sizeof(float) +
              static_cast<std::size_t>(header.targets + header.inputs) * sizeof(std::int64_t);
      }
    }
    std::vector<float> logits;
    std::vector<std::int64_t> targets, inputs;
    for (const auto& [leaf, place] : places) {
      append(logits, place.at, place.header.logits);
      const char* const behind = place.at + place.header.logits * static_cast<std::int64_t>(sizeof(float));
      append(targets, behind, place.header.targets);
      append(inputs, behind + place.header.targets * static_cast<std::int64_t>(sizeof(std::int64_t)),
             place.header.inputs);
    }
    // The last leaf may have fewer samples: only the first extent differs. Rank 0 has leaf 0.
    const auto with_all = [](std::vector<std::int64_t> extents, std::size_t count) {
      std::int64_t of_sample = 1;
      for (std::size_t i = 1; i < extents.size(); ++i) of_sample *= extents[i];
      extents.at(0) = static_cast<std::int64_t>(count) / of_sample;
      return std::vector<std::uint64_t>(extents.begin(), extents.end());
    };
    h5::Image image = h5::Image::create();
    const std::vector<std::uint64_t> shape_of_targets = with_all(target_shape, targets.size());
    std::vector<std::int64_t> numbers(shape_of_targets.at(0));
    std::iota(numbers.begin(), numbers.end(), first);
    image.root().write_array("logits", logits, with_all(shape, logits.size()));
    image.root().write_array("targets", targets, shape_of_targets);
    if (!inputs.empty()) image.root().write_array("input_ids", inputs, with_all(input_shape, inputs.size()));
    image.root().write_array("sample", numbers, {numbers.size()});
    write_file(path_, image.finish());
  });
}

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
  for (const Count& each : classes) sum.add(each);
  return sum;
}

Evaluation evaluate(comm::Group& group, zero::Engine& engine, Batches& batches, Part part, const std::string& dump) {
  const std::size_t labels = batches.labels();
  Evaluation evaluation{0, std::vector<Count>(labels)};
  std::optional<Logits> logits;
  if (!dump.empty()) logits.emplace(group, dump);
  const auto seen = [&](std::int64_t leaf, const unit::Batch& batch, const at::Tensor& output) {
    if (labels > 0) count(output, batch.targets, evaluation.classes);
    if (logits) logits->add(leaf, batch, output);
  };
  evaluation.loss = engine.evaluate(
      batches.micro_batches(part), [&](std::int64_t leaf) { return batches.held_out(part, leaf); },
      labels > 0 || logits ? zero::LogitsSeen(seen) : zero::LogitsSeen());
  if (labels > 0) {
    const std::vector<Count> mine = std::exchange(evaluation.classes, std::vector<Count>(labels));
    for (const std::vector<Count>& other :
         group.all_gather(std::span<const Count>(mine), "exchange of what was counted")) {
      for (std::size_t i = 0; i < labels; ++i) evaluation.classes[i].add(other[i]);
    }
  }
  if (logits) logits->commit((part == Part::validation ? batches.data().validation : batches.data().test)->first());
  return evaluation;
}

std::vector<std::pair<std::string, std::string>> facts(const Evaluation& evaluation, Part part,
                                                       const std::vector<std::string>& labels) {
  const std::string lead = part == Part::validation ? "final_valid_" : "test_";
  std::vector<std::pair<std::string, std::string>> pairs = {{lead + "loss", to_text(evaluation.loss)}};
  if (evaluation.classes.empty()) {
    pairs.emplace_back(lead + "perplexity", to_text(std::exp(evaluation.loss)));
    return pairs;
  }
  pairs.emplace_back(lead + "accuracy", to_text(evaluation.accuracy()));
  if (evaluation.classes.size() > 5) pairs.emplace_back(lead + "accuracy_top5", to_text(evaluation.accuracy_of_five()));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Count& counted = evaluation.classes[i];
    if (counted.samples > 0)
      pairs.emplace_back("class_accuracy." + labels[i], to_text(Evaluation::share(counted.best, counted.samples)));
  }
  return pairs;
}

std::vector<std::string> lines(const Evaluation& evaluation, Part part, const std::vector<std::string>& labels) {
  std::string first = std::string(name(part)) + ": loss: " + to_plain_text(evaluation.loss);
  if (evaluation.classes.empty()) return {first + " perplexity: " + to_plain_text(std::exp(evaluation.loss))};
  first += " accuracy: " + to_plain_text(evaluation.accuracy());
  if (evaluation.classes.size() > 5) first += " accuracy_top5: " + to_plain_text(evaluation.accuracy_of_five());
  std::vector<std::string> text = {first};
  std::vector<std::size_t> order(labels.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto accuracy = [&](std::size_t i) {
    return Evaluation::share(evaluation.classes[i].best, evaluation.classes[i].samples);
  };
  std::erase_if(order, [&](std::size_t i) { return evaluation.classes[i].samples == 0; });
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return accuracy(a) < accuracy(b); });
  for (const std::size_t i : order) {
    text.push_back("class " + printable(labels[i]) + ": accuracy: " + to_rounded_text(accuracy(i), 4) + " (" +
                   to_text(evaluation.classes[i].best) + " of " + to_text(evaluation.classes[i].samples) + ")");
  }
  return text;
}

}  // namespace zs::train
