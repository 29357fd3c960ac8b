// SPDX-License-Identifier: Apache-2.0
// Which sample is trained on when: an order that depends on the seed alone, not on ranks or accumulation.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace zs::data {

/// The numbers 0..n-1 shuffled anew in every epoch.
class Sampler {
 public:
  Sampler(std::int64_t samples, std::uint64_t seed);

  /// The sample at `position` of the endless sequence of epochs.
  std::int64_t at(std::int64_t position);
  /// The epoch of a position, from 0.
  std::int64_t epoch(std::int64_t position) const { return position / samples_; }
  std::int64_t samples() const { return samples_; }

 private:
  std::int64_t samples_, epoch_ = -1;
  std::uint64_t seed_;
  std::vector<std::int64_t> order_;
};

/// Windows of `length` + 1 tokens (inputs and, one later, targets) cut from a corpus without overlap of inputs;
/// the last `validation` share is held out.
struct Windows {
  std::int64_t length = 0, training = 0, validation = 0;
  /// First token of training window i, of validation window i.
  std::int64_t training_start(std::int64_t i) const { return i * length; }
  std::int64_t validation_start(std::int64_t i) const { return (training + i) * length; }
};

/// Throws zs::Error, naming `path`, if `tokens` do not make one window for training and one for validation.
Windows windows(const std::string& path, std::int64_t tokens, std::int64_t length, double validation);

}  // namespace zs::data
