// SPDX-License-Identifier: Apache-2.0
// Internal to the writers of checkpoints: tensors as the files of another form divide them, Python values, and a folder
// that appears whole or not at all.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/temporary.hpp"
#include "checkpoints/forms.hpp"
#include "tensorfile/value.hpp"

namespace zs::checkpoints {

/// A folder with a temporary name until it is complete.
class NewFolder {
 public:
  /// Throws Error if the name exists.
  explicit NewFolder(const std::string& to);
  ~NewFolder();

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
/// Concatenates runs, followed by zeros, and reads their bytes when it is written. REQUIRES: all are of `dtype`, their
/// tensors complete.
tensorfile::Tensor laid_out(tensorfile::Dtype dtype, tensorfile::Shape shape, std::vector<Run> runs,
                            std::int64_t zeros = 0);

/// A tensor of 16-bit numbers converted to float32, which is exact; one of float32 unchanged. Throws Error, which
/// begins with `name`, for others.
tensorfile::Tensor widened(const Whole& whole, const std::string& name);

/// The sizes as a torch.Size.
tensorfile::Value torch_size(const tensorfile::Shape& shape);
/// A tensor without dimensions: f32, or i64.
tensorfile::Tensor scalar(float value);
tensorfile::Tensor scalar(std::int64_t value);

/// Parses a text of text_of(): a number, a truth value, None, a text, a list or tuple of these. Nothing if it is
/// something else, or only a digest.
std::optional<tensorfile::Value> literal(const std::string& text);

/// Whether a Python object is within the value. zs writes none: to read it, a program would run the object's code.
bool has_object(const tensorfile::Value& value);

/// The value of a fact: as it was read, else parsed from its text. Nothing if the text is insufficient, or if it
/// contains a Python object.
std::optional<tensorfile::Value> value_of(const State& state, const std::string& fact);

/// A parameter that is not a tied name of another.
bool is_own(const State& state, const Parameter& parameter);
/// The numbers that an optimizer updates: the master, or the weight if there is none; nullptr if there is neither.
const Whole* numbers(const Parameter& parameter);
/// The same; for a tied name, its owner's.
const Whole* numbers(const State& state, const Parameter& parameter);

/// The parameters of each of the optimizer's groups, in order; if a checkpoint has no groups, those with the same
/// settings.
std::vector<std::vector<const Parameter*>> groups(const State& state);
/// The settings of a group as Python values; missing ones are torch.optim.AdamW's.
std::vector<tensorfile::Item> settings(const Parameter& parameter);

}  // namespace zs::checkpoints
