// SPDX-License-Identifier: Apache-2.0
// The parameters of a model from a file or folder of any program: a checkpoint of zs, or the output of Hugging Face's
// save_pretrained. Memory-mapped: only requested parts are read.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/nf4.hpp"
#include "comm/group.hpp"
#include "tensorfile/state_dict.hpp"
#include "unit/unit.hpp"

namespace zs::checkpoint {

/// A tensor for a file, of the parameters that are stacked there, or of one. Its values come from their unit's float32
/// buffer, in the host's memory, which `whole` returns each time that the tensor is written.
tensorfile::Tensor for_file(const std::vector<const unit::Parameter*>& parameters, std::function<at::Tensor()> whole);

/// Whether a file must have the head of this task (unit::Parameter::head): a folder of a model trained for another task
/// has none, or one of another shape. With `required`, the file is a checkpoint of exactly this model, without further
/// layers.
enum class Heads { required, may_lack, may_differ };

/// Where a parameter is: its place in a unit's flat buffer, and its first element in a tensor of a file.
struct Placed {
  unit::Range place;
  tensorfile::Tensor tensor;
  std::int64_t first;
  std::optional<Nf4Tensor> packed{};  ///< the file has it in 4 bits; then `tensor` has the codes
};

/// The place of a parameter in the tensor `name` of the file. Throws zs::Error, located, which ends with `otherwise`,
/// if that has another shape.
Placed placed(const tensorfile::StateDict& file, const std::string& name, const unit::Parameter& parameter,
              const std::string& otherwise = "");

/// Fills part of a unit's flat buffer, values.size() elements from `begin` on, with the elements that the tensors have.
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
  /// The bytes of a parameter that is held in 4 bits; false if the file has numbers. Empty `bytes` only ask. Throws
  /// zs::Error, located, if the file has scales of another form.
  bool packed(std::size_t unit, const unit::Parameter& parameter, std::span<std::byte> bytes) const;
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

// The adapters of a model in the format of peft's save_pretrained: adapter_model.safetensors, with only the trained
// parameters, each with its name after "base_model.model.".

inline constexpr const char *kInPeft = "base_model.model.", *kAdapterWeights = "/adapter_model.safetensors";

class AdapterWeights {
 public:
  /// Finds the adapters of the units, and other trained parameters. Throws zs::Error, located, if anything is missing,
  /// additional or of another shape. The units must outlive it.
  AdapterWeights(const unit::Units& units, const std::string& folder);

  /// Overwrites the file's part of a unit's flat buffer: values.size() elements from `begin` on.
  void read(std::size_t unit, std::int64_t begin, std::span<float> values) const {
    checkpoint::read(units_[unit], begin, values);
  }
  const std::string& path() const { return file_.path(); }
  /// A hash of everything read, for ranks to compare.
  std::string hash() const;

 private:
  tensorfile::StateDict file_;
  std::vector<std::vector<Placed>> units_;
};

}  // namespace zs::checkpoint
