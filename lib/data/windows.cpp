// SPDX-License-Identifier: Apache-2.0
#include "data/windows.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "base/error.hpp"

namespace zs::data {
namespace {

class Windows final : public Dataset {
 public:
  Windows(std::shared_ptr<const Tokens> tokens, std::int64_t length, std::int64_t first, std::int64_t size)
      : tokens_(std::move(tokens)), length_(length), first_(first), size_(size) {}

  std::int64_t size() const override { return size_; }
  Samples read(std::span<const Draw> draws) const override {
    const auto length = static_cast<std::size_t>(length_), numbers = draws.size() * length;
    Samples samples{static_cast<std::int64_t>(draws.size()),
                    std::vector<std::int64_t>(numbers),
                    {},
                    std::vector<std::int64_t>(numbers)};
    std::vector<std::int64_t> both(length + 1);
    for (std::size_t i = 0; i < draws.size(); ++i) {
      tokens_->copy((first_ + draws[i].sample) * length_, both);
      std::copy(both.begin(), both.end() - 1, samples.tokens.begin() + static_cast<std::ptrdiff_t>(i * length));
      std::copy(both.begin() + 1, both.end(), samples.targets.begin() + static_cast<std::ptrdiff_t>(i * length));
    }
    return samples;
  }

 private:
  std::shared_ptr<const Tokens> tokens_;
  std::int64_t length_, first_, size_;
};

/// Windows that tokens make. Throws where these are fewer than `least`.
std::int64_t count(const Tokens& tokens, std::int64_t length, std::int64_t least) {
  const std::int64_t all = (tokens.count() - 1) / length;
  if (all < least) {
    throw Error(tokens.path(), 0,
                "holds " + std::to_string(tokens.count()) + " tokens, too few for sequences of " +
                    std::to_string(length) + ": name more text or a smaller --seq_length");
  }
  return all;
}

}  // namespace

Split windows(const Parts& parts, std::int64_t length, const HeldOut& held_out) {
  const bool cut_validation = !parts.validation, cut_test = !parts.test && held_out.test > 0;
  const std::int64_t all = count(*parts.training, length, 1 + cut_validation + cut_test);
  const auto held = [&](bool cut, double share) {
    return cut ? std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(all) * share)) : 0;
  };
  const std::int64_t validation = held(cut_validation, held_out.validation), test = held(cut_test, held_out.test),
                     training = all - validation - test;
  if (training < 1)
    throw Error(parts.training->path(), 0,
                "leaves nothing to train on: hold out smaller shares for validation and test");
  Split split;
  std::string sums;
  const auto make = [&](std::unique_ptr<const Dataset>& part, const char* name,
                        const std::shared_ptr<const Tokens>& tokens, std::int64_t first, std::int64_t size) {
    part = std::make_unique<Windows>(tokens ? tokens : parts.training, length, first, size);
    if (!tokens) return;
    sums += std::string(name) + " " + tokens->sha256() + "\n";
    split.tokens += tokens->count();
  };
  make(split.training, "train", parts.training, 0, training);
  make(split.validation, "validation", parts.validation, cut_validation ? training : 0,
       cut_validation ? validation : count(*parts.validation, length, 1));
  if (cut_test || parts.test)
    make(split.test, "test", parts.test, cut_test ? training + validation : 0,
         cut_test ? test : count(*parts.test, length, 1));
  split.sha256 = parts.validation || parts.test ? zs::sha256(sums) : parts.training->sha256();
  return split;
}

}  // namespace zs::data
