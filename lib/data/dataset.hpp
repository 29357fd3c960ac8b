// SPDX-License-Identifier: Apache-2.0
// Samples to train on, by their number.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/tokens.hpp"

namespace zs::data {

class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Samples.
  virtual std::int64_t size() const = 0;
  /// Numbers of a sample's inputs, and of its targets.
  virtual std::int64_t length() const = 0;
  /// Puts sample i into spans of length(). Any thread may call it. REQUIRES: 0 <= i < size().
  virtual void sample(std::int64_t i, std::span<std::int64_t> inputs, std::span<std::int64_t> targets) const = 0;
  /// What stands for all samples: two data sets that are the same in it, and in length(), have the same.
  virtual const std::string& sha256() const = 0;
};

struct Split {
  std::unique_ptr<const Dataset> training, validation;
};

/// Windows of `length` + 1 tokens (inputs and, one later, targets) cut without overlap of inputs; the last `validation`
/// share is held out. Throws zs::Error, naming the tokens' path, if they do not make one window for training and one
/// for validation.
Split windows(const std::shared_ptr<const Tokens>& tokens, std::int64_t length, double validation);

}  // namespace zs::data
