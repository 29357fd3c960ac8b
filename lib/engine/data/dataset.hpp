// SPDX-License-Identifier: Apache-2.0
// The samples of a data set, by number, and its parts.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace zs::data {

/// A draw of a sample: its number, and the pass over the data set (from 0), on which random crops depend.
struct Draw {
  std::int64_t sample = 0, epoch = 0;
};

/// The target of tokens without a loss: padding after a document, or a token that is not trained on.
inline constexpr std::int64_t kPadding = -100;

/// Consecutive samples: for text T tokens each and as many targets, one token later, or kPadding; for images 3 x S x S
/// pixels and a label each.
struct Samples {
  std::int64_t count = 0;
  std::vector<std::int64_t> tokens{};
  std::vector<float> pixels{};
  std::vector<std::int64_t> targets{};
  /// First tokens of documents that do not see each other, in the tokens of all samples; none: each sample is one.
  std::vector<std::int64_t> documents{};
  /// Tokens of each sample in front of its padding, with or without a target; none where pads() is false.
  std::vector<std::int64_t> lengths{};
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Number of samples.
  virtual std::int64_t size() const = 0;
  /// Thread-safe. REQUIRES: sample numbers are below size().
  virtual Samples read(std::span<const Draw> draws) const = 0;
  /// Whether some targets are kPadding.
  virtual bool pads() const { return false; }
  /// Number of targets of a sample without padding; a data set without padding counts 1 per sample.
  virtual std::int64_t targets(std::int64_t sample) const;
  /// Number of its first sample in the data that was divided into parts; 0 if it is a part of its own.
  virtual std::int64_t first() const { return 0; }
};

/// The samples from number `first` on, for evaluations.
Samples read(const Dataset& dataset, std::int64_t first, std::int64_t count);

struct Split {
  std::unique_ptr<const Dataset> training, validation;
  std::unique_ptr<const Dataset> test{};  ///< null if there is none
  std::string path{};                     ///< the source of the samples
  /// Identifies everything that determines the samples: equal values mean equal samples. SHA-256, or prefixed with
  /// another algorithm's name.
  std::string sha256{};
  std::int64_t tokens = 0;            ///< of text, all parts together; 0 for images
  std::int64_t documents = 0;         ///< of text, if documents are distinguished
  std::vector<std::string> labels{};  ///< of images: the model's
  std::vector<std::string> notes{};   ///< for people: what was left out, and why
};

/// The held-out parts if a data set has none: shares of all samples.
struct HeldOut {
  double validation = 0.1, test = 0;
  /// What of it, set otherwise than by default, has no effect because the data set has such a part of its own.
  std::vector<std::string> without_effect(bool has_validation, bool has_test) const;
};

/// The path of a data set: `name` itself, or the folder or file of that name ("wikitext", "owner/wikitext") in
/// $ZS_DATA. Throws zs::Error, with the place to put it, if neither exists.
std::string find(const std::string& name);

}  // namespace zs::data
