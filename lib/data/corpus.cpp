// SPDX-License-Identifier: Apache-2.0
#include "data/corpus.hpp"

#include <algorithm>
#include <filesystem>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/file.hpp"

namespace zs::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failure;
  for (fs::recursive_directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    if (!at->is_symlink() && at->is_regular_file()) files.push_back(at->path().string());
  }
  if (failure) throw Error(folder, 0, failure.message());
  std::sort(files.begin(), files.end());
  return files;
}

bool is_text(const std::string& bytes) { return bytes.find('\0') == std::string::npos; }

}  // namespace

Corpus::Corpus(const std::string& path, double percentage, std::int64_t most) : path_(path) {
  std::error_code failure;
  if (fs::is_directory(path, failure)) {
    bool any = false;
    for (const std::string& file : files_below(path)) {
      const std::string text = Input(file).read_all();
      if (!is_text(text)) continue;
      if (any) bytes_.push_back(kSeparator);
      append(text);
      any = true;
    }
    if (!any) throw Error(path, 0, "holds no text file");
  } else {
    const std::string text = Input(path).read_all();
    if (!is_text(text)) throw Error(path, 0, "is not text: it holds NUL bytes");
    append(text);
  }
  auto count = static_cast<std::int64_t>(static_cast<double>(bytes_.size()) * percentage / 100);
  if (most > 0) count = std::min(count, most);
  if (count == 0) throw Error(path, 0, "holds no token");
  bytes_.resize(static_cast<std::size_t>(count));
  sha256_ = zs::sha256({reinterpret_cast<const char*>(bytes_.data()), bytes_.size()});
}

void Corpus::append(const std::string& text) { bytes_.insert(bytes_.end(), text.begin(), text.end()); }

void Corpus::copy(std::int64_t first, std::span<std::int64_t> out) const {
  std::copy_n(bytes_.begin() + first, out.size(), out.begin());
}

}  // namespace zs::data
