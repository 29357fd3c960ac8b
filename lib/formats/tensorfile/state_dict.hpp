// SPDX-License-Identifier: Apache-2.0
// The weights of a model by name, from any supported file or folder.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tensorfile/tensor.hpp"

namespace zs::tensorfile {

class StateDict {
 public:
  struct Entry {
    std::string name;
    Tensor tensor;  ///< keeps its file mapped
  };

  /// Throws Error at a duplicate name.
  void add(std::string name, Tensor tensor);
  void add_other(std::string name) { others_.push_back(std::move(name)); }

  /// In the order of the file, or of the index.
  const std::vector<Entry>& entries() const { return entries_; }
  /// nullptr if there is none.
  const Tensor* find(std::string_view name) const;
  /// Throws Error with the path and the nearest name if there is none.
  const Tensor& at(std::string_view name) const;
  /// Names of further content of the file: values that are not tensors, and tensors that the index leaves out.
  const std::vector<std::string>& others() const { return others_; }
  /// The file that was opened; for a folder, the file chosen in it.
  const std::string& path() const { return path_; }
  /// Reads everything and throws Error at a wrong checksum. Returns the number of storages with a checksum: 0 for
  /// safetensors, which has none.
  std::size_t verify() const;

  explicit StateDict(std::string path) : path_(std::move(path)) {}

 private:
  std::string path_;
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> places_;
  std::vector<std::string> others_;
};

/// Whether a folder has one of the files that open_state_dict() opens.
bool has_state_dict(const std::string& folder);

/// Opens a file of torch.save, a safetensors file, an index of shards (`*.index.json`), or a folder that has, in this
/// order of preference, model.safetensors, model.safetensors.index.json, pytorch_model.bin or
/// pytorch_model.bin.index.json. From a file of torch.save it takes the tensors of the outermost dict. If that has
/// none, and exactly one of the dicts `state_dict`, `model_state_dict`, `model`, `module`, it takes the tensors of that
/// dict. Throws Error, with the path, at any defect and if there is no tensor.
StateDict open_state_dict(const std::string& path);

}  // namespace zs::tensorfile
