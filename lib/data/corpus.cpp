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

void append(Corpus& corpus, const std::string& text) {
  if (corpus.files++ > 0) corpus.tokens.push_back(kSeparator);
  corpus.tokens.insert(corpus.tokens.end(), text.begin(), text.end());
}

bool is_text(const std::string& bytes) { return bytes.find('\0') == std::string::npos; }

}  // namespace

Corpus read_corpus(const std::string& path, double percentage, std::int64_t most) {
  Corpus corpus;
  corpus.path = path;
  std::error_code failure;
  if (fs::is_directory(path, failure)) {
    for (const std::string& file : files_below(path)) {
      const std::string text = Input(file).read_all();
      if (is_text(text)) append(corpus, text);
    }
    if (corpus.files == 0) throw Error(path, 0, "holds no text file");
  } else {
    const std::string text = Input(path).read_all();
    if (!is_text(text)) throw Error(path, 0, "is not text: it holds NUL bytes");
    append(corpus, text);
  }
  auto count = static_cast<std::int64_t>(static_cast<double>(corpus.tokens.size()) * percentage / 100);
  if (most > 0) count = std::min(count, most);
  if (count == 0) throw Error(path, 0, "holds no token");
  corpus.tokens.resize(static_cast<std::size_t>(count));
  corpus.sha256 = zs::sha256({reinterpret_cast<const char*>(corpus.tokens.data()), corpus.tokens.size()});
  return corpus;
}

}  // namespace zs::data
