// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"

namespace zs::data {
namespace {

class Windows final : public Dataset {
 public:
  Windows(std::shared_ptr<const Tokens> tokens, std::int64_t length, std::int64_t first, std::int64_t size)
      : tokens_(std::move(tokens)), length_(length), first_(first), size_(size) {}

  std::int64_t size() const override { return size_; }
  std::int64_t length() const override { return length_; }
  void sample(std::int64_t i, std::span<std::int64_t> inputs, std::span<std::int64_t> targets) const override {
    std::vector<std::int64_t> both(static_cast<std::size_t>(length_) + 1);
    tokens_->copy((first_ + i) * length_, both);
    std::copy(both.begin(), both.end() - 1, inputs.begin());
    std::copy(both.begin() + 1, both.end(), targets.begin());
  }
  const std::string& sha256() const override { return tokens_->sha256(); }

 private:
  std::shared_ptr<const Tokens> tokens_;
  std::int64_t length_, first_, size_;
};

}  // namespace

Split windows(const std::shared_ptr<const Tokens>& tokens, std::int64_t length, double validation) {
  const std::int64_t all = (tokens->count() - 1) / length;
  if (all < 2) {
    throw Error(tokens->path(), 0,
                "holds " + std::to_string(tokens->count()) + " tokens, too few for sequences of " +
                    std::to_string(length) + ": name more text or a smaller --seq_length");
  }
  const auto held = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(all) * validation));
  return {std::make_unique<Windows>(tokens, length, 0, all - held),
          std::make_unique<Windows>(tokens, length, all - held, held)};
}

}  // namespace zs::data
