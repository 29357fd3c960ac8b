// SPDX-License-Identifier: Apache-2.0
// Token files: ids of a text one after another, as llm.c and nanoGPT keep them.
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

/// llmc: 256 int32, of which the first are a magic, a version and the number of ids; then uint16 (20240520, 1) or
/// uint32 (20240801, 7). nanogpt: uint16 and nothing else. All little-endian.
enum class Layout { llmc, nanogpt };

/// Whether a file's content begins with a header of llm.c's: a token file has one, unless it is nanogpt's.
bool has_header(std::string_view bytes);

/// A token file, mapped: its pages come from disk when they are first looked at.
class TokenFile {
 public:
  /// Tells the layout by the first bytes. Throws Error with the path: cut short, too long, another kind of file, no id
  /// at all; and an id that is not below `vocabulary`, where that is given (every id is looked at then).
  explicit TokenFile(const std::string& path, std::optional<Id> vocabulary = {});

  std::int64_t count() const { return count_; }
  /// REQUIRES: 0 <= i < count().
  Id id(std::int64_t i) const;
  /// Puts ids i to i + n - 1 into `out`. REQUIRES: they are there.
  template <typename T>
  void copy(std::int64_t i, std::int64_t n, T* out) const {
    for (std::int64_t k = 0; k < n; ++k) out[k] = static_cast<T>(id(i + k));
  }
  /// The first `n` ids as the file has them, for a checksum. REQUIRES: n <= count().
  std::string_view bytes(std::int64_t n) const { return {ids_, static_cast<std::size_t>(n * width_)}; }
  /// The largest id; looks at all of them.
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
  /// `vocabulary` is the largest possible id and one. Throws Error where the layout cannot hold such ids, and where the
  /// path names no regular file.
  TokenWriter(const std::string& path, Layout layout, Id vocabulary);
  /// REQUIRES: ids are below `vocabulary`.
  void write(const std::vector<Id>& ids);
  /// Throws Error where there are more ids than the layout can count, or none.
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
