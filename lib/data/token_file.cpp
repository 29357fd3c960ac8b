// SPDX-License-Identifier: Apache-2.0
#include "data/token_file.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "token/cache.hpp"
#include "token/file.hpp"
#include "token/tokenize.hpp"

namespace zs::data {
namespace {

class TokenFile final : public Tokens {
 public:
  TokenFile(token::TokenFile file, const std::string& path, std::int64_t vocabulary, double percentage,
            std::int64_t most)
      : file_(std::move(file)),
        path_(path),
        vocabulary_(vocabulary),
        count_(static_cast<std::int64_t>(static_cast<double>(file_.count()) * percentage / 100)) {
    if (most > 0) count_ = std::min(count_, most);
    if (count_ == 0) throw Error(path, 0, "holds no token");
    sha256_ = zs::sha256(file_.bytes(count_));
  }

  std::int64_t count() const override { return count_; }
  void copy(std::int64_t first, std::span<std::int64_t> out) const override {
    file_.copy(first, static_cast<std::int64_t>(out.size()), out.data());
  }
  std::int64_t vocabulary() const override { return vocabulary_; }
  const std::string& sha256() const override { return sha256_; }
  const std::string& path() const override { return path_; }

 private:
  token::TokenFile file_;
  std::string path_;
  std::int64_t vocabulary_, count_;
  std::string sha256_;
};

}  // namespace

bool names_token_file(const std::string& path) { return path.ends_with(".bin"); }

std::shared_ptr<const Tokens> token_file(const std::string& path, std::int64_t vocabulary, double percentage,
                                         std::int64_t most) {
  token::TokenFile file(path, static_cast<token::Id>(vocabulary));
  return std::make_shared<TokenFile>(std::move(file), path, vocabulary, percentage, most);
}

std::shared_ptr<const Tokens> tokenized_text(const std::string& path, const std::string& tokenizer,
                                             std::int64_t vocabulary, double percentage, std::int64_t most) {
  std::vector<std::string> left_out;
  const auto parts = token::tokenized(path, tokenizer, token::token_cache(), token::processors(), left_out);
  if (!parts.front().name.empty()) {
    std::string names;
    for (const auto& part : parts) names += (names.empty() ? "" : ", ") + part.name;
    throw Error(path, 0, "is divided (" + names + "), which zs-train does not read yet: name one of its files");
  }
  try {
    token::TokenFile file(parts.front().path, static_cast<token::Id>(vocabulary));
    return std::make_shared<TokenFile>(std::move(file), path, vocabulary, percentage, most);
  } catch (const Error& error) {
    throw Error(path, 0, "through " + tokenizer + ": " + error.what());
  }
}

}  // namespace zs::data
