// SPDX-License-Identifier: Apache-2.0
// Files of torch.save: zip archives with a pickle and a raw entry per storage.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/file.hpp"
#include "tensorfile/pickle.hpp"
#include "tensorfile/value.hpp"

namespace zs::tensorfile {

/// Writes what torch.load(path, weights_only=True) of PyTorch 1.13 and later reads: a Dict as a dict, a Tensor as a
/// tensor, tensors of one Storage as tensors that share memory. A float becomes a 0-dimensional float64 tensor, since
/// that reader refuses floats; Value::real() and Python's float() read it back. Streams: each produced tensor generates
/// its bytes once, in the order of the dict. The file appears whole or not at all, and the same values give the same
/// bytes. Throws Error with `path` and the key.
void write_torch(const std::string& path, const Value& root, Reals reals = Reals::tensors);
/// Like write_torch(), with floats as floats, as a part of `output` at offset `begin`. Returns the part's size in
/// bytes.
std::uint64_t append_torch(Output& output, std::uint64_t begin, const std::string& place, const Value& root);

/// Reads a file of torch.save; executes nothing in it. The data of tensors is mapped, not read: verify() reads it.
/// Throws Error, "PATH: ENTRY: byte N: ...", for a damaged file, a file from before PyTorch 1.6, a TorchScript archive,
/// and a pickle with anything but tensors and plain values (the global is named).
Value read_torch(const std::string& path);
/// Like read_torch(), with objects of any names (pickle.hpp): for the other objects that trainers save with weights.
Value read_torch_objects(const std::string& path);
/// Like read_torch_objects(), for a part of a mapped file, `bytes`, which messages call `place`.
Value read_torch_objects(const std::shared_ptr<const Mapping>& file, std::string_view bytes, const std::string& place);

/// Reads all tensor data once and throws Error, "PATH: ENTRY: ...", at a wrong checksum. Returns the number of storages
/// with a checksum.
std::size_t verify(const Value& root);

}  // namespace zs::tensorfile
