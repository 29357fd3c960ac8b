// SPDX-License-Identifier: Apache-2.0
#include "data/token_file.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/folder.hpp"

namespace zs::data {
namespace {

constexpr std::int64_t kPiece = 1 << 16;  // ids that are hashed at once

}  // namespace

bool is_token_file(const std::string& path) { return path.ends_with(".bin") && is_file(path); }

TokenFile::TokenFile(const std::string& path, std::int64_t vocabulary, double percentage, std::int64_t most,
                     const std::string& name, bool whole)
    : path_(name.empty() ? path : name),
      file_(path, static_cast<token::Id>(std::min<std::int64_t>(vocabulary, UINT32_MAX))),
      marks_(std::filesystem::exists(token::marks_path(path)) ? std::optional<token::Marks>(file_) : std::nullopt),
      all_(whole),
      vocabulary_(vocabulary),
      count_(static_cast<std::int64_t>(static_cast<double>(file_.count()) * percentage / 100)) {
  if (most > 0) count_ = std::min(count_, most);
  if (count_ == 0) throw Error(path, 0, "holds no token");
  // By value, whatever the width in the file: the same ids are the same data set.
  Checksum sum(count_ * static_cast<std::int64_t>(sizeof(token::Id) + (marks_ ? sizeof(token::Mark) : 0)));
  std::vector<token::Id> ids(static_cast<std::size_t>(std::min(kPiece, count_)));
  for (std::int64_t first = 0; first < count_; first += kPiece) {
    const std::int64_t n = std::min(kPiece, count_ - first);
    file_.copy(first, n, ids.data());
    sum.add({reinterpret_cast<const char*>(ids.data()), static_cast<std::size_t>(n) * sizeof(token::Id)});
  }
  std::vector<token::Mark> marks(ids.size());
  for (std::int64_t first = 0; marks_ && first < count_; first += kPiece) {
    const auto part = std::span(marks).first(static_cast<std::size_t>(std::min(kPiece, count_ - first)));
    copy_marks(first, part);
    sum.add({reinterpret_cast<const char*>(part.data()), part.size()});
  }
  const std::string kind = sum.name();
  sha256_ = (kind == "sha256" ? "" : kind + ":") + sum.text();
}

void TokenFile::copy_marks(std::int64_t first, std::span<token::Mark> out) const {
  marks_->copy(first, out);
  if (!all_) return;
  for (token::Mark& mark : out) mark = mark & token::kBegins ? token::kBegins : token::kTrained;
}

}  // namespace zs::data
