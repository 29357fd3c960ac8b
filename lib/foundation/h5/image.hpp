// SPDX-License-Identifier: Apache-2.0
// HDF5 files as bytes in memory, since HDF5 can neither write to a pipe nor read from one. Not thread-safe, like the
// library. Every failure throws Error with HDF5's reason and without a file name.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "h5/handle.hpp"

namespace zs::h5 {

/// The values of a one-dimensional dataset: 64-bit integers, doubles or texts.
using Values = std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>;
/// Attributes as text. Numbers read back as their shortest text.
using Attributes = std::map<std::string, std::string>;

struct Member {
  std::string name;
  bool group;  ///< else a dataset
};

/// A group of an image. Names are single links: no '/', not ".", not empty.
class Group {
 public:
  explicit Group(Handle handle) : handle_(std::move(handle)) {}

  // ---- writing
  /// Creates a group inside this one; it keeps the order of its members.
  Group make(const std::string& name);
  void set(const std::string& key, std::string_view value);
  void set(const std::string& key, std::int64_t value);
  /// Writes a chunked, extensible dataset with a checksum per chunk. Texts are fixed-length UTF-8, padded with NUL.
  void write(const std::string& name, const Values& values, const Attributes& attributes);

  /// Writes a dataset of several dimensions, row-major. REQUIRES: values.size() is the product of `shape`, and not 0.
  void write_array(const std::string& name, const std::vector<std::int64_t>& values,
                   const std::vector<std::uint64_t>& shape);
  void write_array(const std::string& name, const std::vector<float>& values, const std::vector<std::uint64_t>& shape);

  // ---- reading
  bool has(const std::string& name) const;
  /// Groups and datasets in the order of creation, or by name if that was not recorded. Soft and external links are an
  /// Error.
  std::vector<Member> members() const;
  Group open(const std::string& name) const;
  /// A dataset of one dimension: integers that fit 64 bits signed, reals of any width, fixed- or variable-length texts.
  /// A dataset that claims far more values than its storage can hold is an Error.
  Values read(const std::string& name) const;
  /// The attributes of this group, or of its dataset `name`. Only scalar texts and numbers are read; others throw.
  Attributes attributes() const;
  Attributes attributes(const std::string& name) const;

 private:
  void require_hard(const std::string& name) const;

  Handle handle_;
};

/// A file in memory. Holds its own copy of the bytes.
class Image {
 public:
  /// An empty file to write to. The same calls give the same bytes: no times are stored.
  static Image create();
  /// Opens the file with these bytes. REQUIRES: image_size(bytes) <= bytes.size().
  static Image open(std::string_view bytes);

  /// The root group. REQUIRES: not used after this image is destroyed or finished.
  Group root() const;
  /// Closes the file and returns its bytes as on disk. REQUIRES: made by create(), called once.
  std::string finish();

 private:
  explicit Image(Handle file) : file_(std::move(file)) {}
  std::unique_ptr<std::string> closed_;  // filled when HDF5 closes the file; outlives file_
  Handle file_;
};

/// The first eight bytes of every HDF5 file.
inline constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";

/// Length in bytes of the file that begins at `bytes`, by its superblock. Throws Error if the superblock is missing,
/// truncated or not supported (versions 0 to 3, 8-byte addresses, no user block).
std::uint64_t image_size(std::string_view bytes);

}  // namespace zs::h5
