// SPDX-License-Identifier: Apache-2.0
// Token files: the ids of a text in sequence, in the formats of llm.c and nanoGPT.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/mapped.hpp"
#include "token/bpe.hpp"

namespace zs::token {

/// llmc: 256 int32, of which the first are a magic number, a version and the number of ids; then uint16 (20240520, 1)
/// or uint32 (20240801, 7). nanogpt: only uint16. All little-endian.
enum class Layout { llmc, nanogpt };

/// Whether a file begins with llm.c's header: all token files do, except nanogpt's.
bool has_header(std::string_view bytes);

/// A token file, mapped: its pages are read from disk on first access.
class TokenFile {
 public:
  /// Recognises the layout by the first bytes. Throws Error with the path: truncated, too long, another kind of file,
  /// no ids; and if an id is not below `vocabulary`, if given (then every id is read).
  explicit TokenFile(const std::string& path, std::optional<Id> vocabulary = {});

  std::int64_t count() const { return count_; }
  /// REQUIRES: 0 <= i < count().
  Id id(std::int64_t i) const;
  /// Copies ids i to i + n - 1 to `out`. REQUIRES: they exist.
  template <typename T>
  void copy(std::int64_t i, std::int64_t n, T* out) const {
    for (std::int64_t k = 0; k < n; ++k) out[k] = static_cast<T>(id(i + k));
  }
  /// The first `n` ids as in the file, for a checksum. REQUIRES: n <= count().
  std::string_view bytes(std::int64_t n) const { return {ids_, static_cast<std::size_t>(n * width_)}; }
  /// The largest id; reads all of them.
  Id largest() const;
  Layout layout() const { return layout_; }
  /// Bytes of an id in the file: 2 or 4.
  int width() const { return width_; }
  const std::string& path() const { return mapping_->path(); }

 private:
  std::shared_ptr<const Mapping> mapping_;
  Layout layout_ = Layout::nanogpt;
  int width_ = 2;
  std::int64_t count_ = 0;
  const char* ids_ = nullptr;
};

/// Writes a token file; it appears whole or not at all.
class TokenWriter {
 public:
  /// `vocabulary` is the largest possible id plus one. Throws Error if the layout cannot hold such ids, and if the path
  /// is not a regular file.
  TokenWriter(const std::string& path, Layout layout, Id vocabulary);
  /// REQUIRES: ids are below `vocabulary`.
  void write(const std::vector<Id>& ids);
  /// Throws Error if there are more ids than the layout can count, or none.
  void check() const;
  /// Throws as check() does.
  void commit();
  std::int64_t count() const { return count_; }

 private:
  std::string path_;
  Layout layout_;
  int width_;
  Output output_;
  std::int64_t count_ = 0;
};

inline Id TokenFile::id(std::int64_t i) const {
  if (width_ == 2) {
    std::uint16_t id = 0;
    std::memcpy(&id, ids_ + 2 * i, 2);
    return id;
  }
  std::uint32_t id = 0;
  std::memcpy(&id, ids_ + 4 * i, 4);
  return id;
}

}  // namespace zs::token
