// SPDX-License-Identifier: Apache-2.0
// For tests: a folder that goes away with the test, and tensors of any bits, the same ones that
// tests/tensorfile.py makes.
#pragma once
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/folder.hpp"
#include "tensorfile/tensor.hpp"

namespace zs::tensorfile {

using Folder = TemporaryFolder;

inline std::string slurp(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

inline void spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// `size` bytes: the low bytes of x(i) >> 16 where x is a linear congruence from `seed`. All bits occur, NaN too.
inline std::string any_bytes(std::size_t size, std::uint32_t seed) {
  std::string bytes(size, '\0');
  std::uint32_t x = seed;
  for (char& byte : bytes) {
    x = x * 1664525U + 1013904223U;
    byte = static_cast<char>(x >> 16);
  }
  return bytes;
}

/// A contiguous tensor of any_bytes; of 0 and 1 for bool.
inline Tensor any_tensor(Dtype dtype, const Shape& shape, std::uint32_t seed) {
  std::size_t size = size_of(dtype);
  for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
  std::string bytes = any_bytes(size, seed);
  if (dtype == Dtype::boolean) {
    for (char& byte : bytes) byte &= 1;
  }
  return make_tensor(dtype, shape, Storage::own(std::move(bytes)));
}

inline std::string raw(const Tensor& tensor) {
  std::string bytes(tensor.byte_count(), '\0');
  read_raw(tensor, bytes);
  return bytes;
}

/// The text of the Error that `call` throws; "no error" where it throws none.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace zs::tensorfile
