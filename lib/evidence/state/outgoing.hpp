// SPDX-License-Identifier: Apache-2.0
// Within the writers of checkpoints: tensors as the files of another form cut them, values as Python has them, and a
// folder that appears whole or not at all.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/temporary.hpp"
#include "state/convert.hpp"
#include "tensorfile/value.hpp"

namespace zs::state {

/// A folder under a name of its own until it is whole.
class NewFolder {
 public:
  /// Throws Error where there is something of that name.
  explicit NewFolder(const std::string& to);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::string& path() const { return path_; }
  void publish();

 private:
  std::string to_, path_;
  std::optional<RemovedBySignal> guard_;
};

/// Elements of a tensor, row-major.
struct Run {
  const Whole* whole = nullptr;
  std::int64_t begin = 0, count = 0;
};
/// Runs behind each other, and zeros behind these, whose bytes are read while they are written. REQUIRES: all are of
/// `dtype`, their tensors whole.
tensorfile::Tensor laid_out(tensorfile::Dtype dtype, tensorfile::Shape shape, std::vector<Run> runs,
                            std::int64_t zeros = 0);

/// A tensor of 16-bit numbers as one of float32, which holds them exactly; one of float32 as it is. Throws Error at
/// others, led by `name`.
tensorfile::Tensor widened(const Whole& whole, const std::string& name);

/// A tensor without dimensions: f32, or i64.
tensorfile::Tensor scalar(float value);
tensorfile::Tensor scalar(std::int64_t value);

/// What a text of text_of() was made of: a number, a truth value, None, a text, a list or tuple of these. Nothing where
/// it is something else, or told by a digest.
std::optional<tensorfile::Value> literal(const std::string& text);

/// The value of a fact: as it was read, else what its text says. Nothing where that says too little, or where it has an
/// object of Python's.
std::optional<tensorfile::Value> value_of(const State& state, const std::string& fact);

/// A parameter that stands for itself, and is no other name of one.
bool is_own(const State& state, const Parameter& parameter);
/// The numbers that an optimizer works on: the master, or the weight where there is none; nullptr where there is
/// neither.
const Whole* numbers(const Parameter& parameter);
/// The same of a name that is tied: those of the parameter that it stands for.
const Whole* numbers(const State& state, const Parameter& parameter);

/// The parameters of each of the optimizer's groups, in order; where a checkpoint has no groups, those of the same
/// settings.
std::vector<std::vector<const Parameter*>> groups(const State& state);
/// The settings of a group as Python has them, with those of torch.optim.AdamW that it does not say.
std::vector<tensorfile::Item> settings(const Parameter& parameter);

/// Reads what was written and compares: throws Error where it differs from what was read, and adds to `made` what the
/// form has no place for.
void require_same(const State& state, const std::string& written, const std::string& to, Converted& made);

}  // namespace zs::state
