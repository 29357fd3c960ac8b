// SPDX-License-Identifier: Apache-2.0
// Matrices that a file has in bitsandbytes' 4 bits (device/nf4.hpp): NAME holds the codes, and NAME.absmax,
// NAME.nested_absmax, NAME.quant_state.bitsandbytes__nf4 and others the rest.
#pragma once
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "device/nf4.hpp"
#include "tensorfile/state_dict.hpp"

namespace zs::checkpoint {

class Nf4Tensor {
 public:
  /// The matrix `name`, of this shape; nothing if the file does not have it in 4 bits. Adds the names of its tensors to
  /// `taken`. Throws zs::Error, located, if it is of another shape, not NF4 in blocks of 64, or not complete.
  static std::optional<Nf4Tensor> find(const tensorfile::StateDict& file, const std::string& name,
                                       const tensorfile::Shape& shape, std::set<std::string>& taken);

  const device::Nf4& form() const { return form_; }
  /// Its tensors in the file; they live as long as this.
  std::vector<const tensorfile::Tensor*> tensors() const;
  /// All of it. REQUIRES: bytes.size() == form().bytes().
  void read(std::span<std::byte> bytes) const;
  /// Its numbers from `first` on, as float32.
  void read(std::int64_t first, std::span<float> values) const;

 private:
  device::Nf4 form_;
  tensorfile::Tensor codes_, scales_;
  std::optional<tensorfile::Tensor> table_, groups_;  // of nested scales
  float mean_ = 0;
};

}  // namespace zs::checkpoint
