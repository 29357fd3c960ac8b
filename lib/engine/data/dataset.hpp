// SPDX-License-Identifier: Apache-2.0
// Samples to train on, by their number, and the parts of a data set.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace zs::data {

/// A sample as it is drawn: its number, and the pass over the data set (from 0), in which random crops differ.
struct Draw {
  std::int64_t sample = 0, epoch = 0;
};

/// A target that stands for none: padding behind the end of a document, or a token that no loss is of.
inline constexpr std::int64_t kPadding = -100;

/// Samples one after another: of text T tokens each and as many targets, one token later, or kPadding; of images
/// 3 x S x S pixels and a label each.
struct Samples {
  std::int64_t count = 0;
  std::vector<std::int64_t> tokens{};
  std::vector<float> pixels{};
  std::vector<std::int64_t> targets{};
  /// Where documents begin that do not see each other, in the tokens of all samples; none: each sample is one.
  std::vector<std::int64_t> documents{};
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Samples.
  virtual std::int64_t size() const = 0;
  /// Any thread may call it. REQUIRES: sample numbers are below size().
  virtual Samples read(std::span<const Draw> draws) const = 0;
  /// Whether some targets stand for none.
  virtual bool pads() const { return false; }
  /// Targets of a sample that are no padding; where none is padded, a sample counts as 1.
  virtual std::int64_t targets(std::int64_t sample) const;
};

/// The samples from number `first` on, as evaluations have them.
Samples read(const Dataset& dataset, std::int64_t first, std::int64_t count);

struct Split {
  std::unique_ptr<const Dataset> training, validation;
  std::unique_ptr<const Dataset> test{};  ///< null where there is none
  std::string path{};                     ///< where the samples come from
  /// What stands for all that samples are made from: two that are the same in it are the same. SHA-256, or led by
  /// another name.
  std::string sha256{};
  std::int64_t tokens = 0;            ///< of text, all parts together; 0 of images
  std::int64_t documents = 0;         ///< of text, where they are told apart
  std::vector<std::string> labels{};  ///< of images: the names of classes
  std::vector<std::string> notes{};   ///< what was left out, and why, for people
};

/// What is held out of training where a data set does not say so itself: shares of all samples.
struct HeldOut {
  double validation = 0.1, test = 0;
};

/// Where a data set is: `name` itself, or the folder or file of that name ("wikitext", "owner/wikitext") in $ZS_DATA.
/// Throws zs::Error, which says where to put it, where there is neither.
std::string find(const std::string& name);

}  // namespace zs::data
