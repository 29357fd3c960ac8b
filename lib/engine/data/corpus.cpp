// SPDX-License-Identifier: Apache-2.0
#include "data/corpus.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "token/document.hpp"

namespace zs::data {

Corpus::Corpus(const std::string& name, const std::vector<std::string>& files, const std::string& text_key,
               double percentage, std::int64_t most, std::vector<std::string>& no_text)
    : path_(name) {
  bool any = false;
  for (const std::string& file : files) {
    const bool text = append(file, text_key);
    if (!text && files.size() == 1) throw Error(file, 0, "is not text: it holds NUL bytes");
    if (!text) no_text.push_back(file);
    any = any || text;
  }
  if (!any) throw Error(path_, 0, "holds no text file");
  auto count = static_cast<std::int64_t>(static_cast<double>(bytes_.size()) * percentage / 100);
  if (most > 0) count = std::min(count, most);
  if (count == 0) throw Error(path_, 0, "holds no token");
  bytes_.resize(static_cast<std::size_t>(count));
  sha256_ = zs::sha256({reinterpret_cast<const char*>(bytes_.data()), bytes_.size()});
}

bool Corpus::append(const std::string& file, const std::string& text_key) {
  token::DocumentReader documents(file, text_key);
  const std::size_t before = bytes_.size();
  bool first = before == 0;
  for (std::string text; documents.next(text);) {
    if (text.find('\0') != std::string::npos) {
      bytes_.resize(before);
      return false;
    }
    if (!first) bytes_.push_back(kSeparator);
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    first = false;
  }
  return true;
}

void Corpus::copy(std::int64_t first, std::span<std::int64_t> out) const {
  std::copy_n(bytes_.begin() + first, out.size(), out.begin());
}

}  // namespace zs::data
