// SPDX-License-Identifier: Apache-2.0
// The parameters of a model from a file or folder of any program: a checkpoint of zs, or the output of Hugging Face's
// save_pretrained. Memory-mapped: only requested parts are read.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "tensorfile/state_dict.hpp"
#include "unit/unit.hpp"

namespace zs::checkpoint {

/// Whether a file must have the head of this task (unit::Parameter::head): a folder of a model trained for another task
/// has none, or one of another shape. With `required`, the file is a checkpoint of exactly this model, without further
/// layers.
enum class Heads { required, may_lack, may_differ };

/// Where a tensor of a file goes: its first element's place in a unit's flat buffer.
struct Placed {
  std::int64_t offset;
  tensorfile::Tensor tensor;
};

/// The place of a tensor of the file. Throws zs::Error, located, which ends with `otherwise`, if its shape is not the
/// parameter's.
Placed placed(const tensorfile::StateDict& file, const std::string& name, const unit::Parameter& parameter,
              const std::string& otherwise = "");

/// Fills part of a unit's flat buffer, values.size() elements from `begin` on, with what tensors there have of it.
void read(const std::vector<Placed>& unit, std::int64_t begin, std::span<float> values);

class Weights {
 public:
  /// Finds every parameter of the units, and compares all names and shapes before it reads any value. Names may lack a
  /// prefix ("h.0." for "transformer.h.0."), as in a model without its head; the units' extras may be present too. If
  /// anything else is missing, additional or of another shape, the file is of another model: throws zs::Error, located,
  /// which ends with `otherwise`.
  Weights(const unit::Units& units, const std::string& folder, const std::string& otherwise,
          Heads heads = Heads::required);

  /// Fills part of a unit's flat buffer: values.size() elements from `begin` on. Skips parameters in lacking(), and
  /// adapters that the file lacks.
  void read(std::size_t unit, std::int64_t begin, std::span<float> values) const {
    checkpoint::read(units_[unit], begin, values);
  }
  /// Throws comm::SharedError at a wrong checksum in the file, and if a rank has different weights than the next, for
  /// example from a file on its node. Two neighbouring ranks read each tensor. COLLECTIVE.
  void check(comm::Group& group) const;

  /// Parameters of heads that the file lacks, or has with another shape.
  const std::vector<std::string>& lacking() const { return lacking_; }
  /// The file that was opened.
  const std::string& path() const { return file_.path(); }

 private:
  std::string folder_;
  tensorfile::StateDict file_;
  std::vector<std::vector<Placed>> units_;
  std::vector<std::string> lacking_;
};

}  // namespace zs::checkpoint
