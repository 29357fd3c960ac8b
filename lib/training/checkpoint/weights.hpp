// SPDX-License-Identifier: Apache-2.0
// The parameters of a model as a file or folder of any program has them: a checkpoint of ours, or what Hugging Face's
// save_pretrained wrote. Memory-mapped: what is not asked for is not read.
#pragma once
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "tensorfile/state_dict.hpp"
#include "unit/unit.hpp"

namespace zs::checkpoint {

/// Whether a file must have the head of this task (unit::Parameter::head): a folder of a model that was trained for
/// another task has none, or one of another shape. Where it must, the file is a checkpoint of this very model, and has
/// no layers that the model leaves out.
enum class Heads { required, may_lack, may_differ };

class Weights {
 public:
  /// Finds every parameter of the units, and compares all names and shapes before any value is read. Names may lack
  /// what they begin with ("h.0." for "transformer.h.0."), as those of a model without its head do; what the units'
  /// extras name may be there too. Anything else that is missing, is more, or has another shape is of another model:
  /// zs::Error, located, which `otherwise` ends.
  Weights(const unit::Units& units, const std::string& folder, const std::string& otherwise,
          Heads heads = Heads::required);

  /// Fills part of a unit's flat buffer: values.size() elements from `begin` on. What is in lacking() stays, and
  /// adapters that the file has not.
  void read(std::size_t unit, std::int64_t begin, std::span<float> values) const;
  /// Throws comm::SharedError at a checksum in the file that differs, and where a rank has other weights than the next,
  /// as the file of its own node may be. Each tensor is read by two neighbouring ranks. COLLECTIVE.
  void check(comm::Group& group) const;

  /// Parameters of heads that the file lacks, or has in another shape.
  const std::vector<std::string>& lacking() const { return lacking_; }
  /// The file that was opened.
  const std::string& path() const { return file_.path(); }

 private:
  struct Place {
    std::int64_t offset;  // in the unit's flat buffer
    tensorfile::Tensor tensor;
    std::string name;
  };
  std::string folder_;
  tensorfile::StateDict file_;
  std::vector<std::vector<Place>> units_;
  std::vector<std::string> lacking_;
};

}  // namespace zs::checkpoint
