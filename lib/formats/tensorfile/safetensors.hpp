// SPDX-License-Identifier: Apache-2.0
// The safetensors format: a JSON header and the raw elements, without code and without checksums.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tensorfile/tensor.hpp"

namespace zs::tensorfile {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
/// The header's `__metadata__`: names and texts.
using Metadata = std::vector<std::pair<std::string, std::string>>;

struct Safetensors {
  Metadata metadata;
  NamedTensors tensors;  ///< in the order of their data
};

/// Writes tensors in descending size of their type, then by name, like the reference library: the same bytes. The data
/// of each tensor starts at a multiple of its type's size. Streams; the file appears whole or not at all. The format
/// has no shared memory: tied tensors are written twice, so leave one out. Hugging Face's loaders require `format: pt`.
/// Throws Error with `path` and the name.
void write_safetensors(const std::string& path, const NamedTensors& tensors,
                       const Metadata& metadata = {{"format", "pt"}});

/// Reads the header and maps the data. Throws Error, with the path and the tensor's name, unless the header has the
/// stated size of at most 100 MB, is well-formed, has unique names and known types, and the tensors cover all data
/// without gaps and overlaps.
Safetensors read_safetensors(const std::string& path);

}  // namespace zs::tensorfile
