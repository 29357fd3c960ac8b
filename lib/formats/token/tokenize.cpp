// SPDX-License-Identifier: Apache-2.0
#include "token/tokenize.hpp"

#include <algorithm>
#include <thread>

#include "base/error.hpp"
#include "token/document.hpp"

namespace zs::token {
namespace {

void encode_batch(const Tokenizer& tokenizer, const std::string& file, std::vector<std::string>& batch, int threads,
                  const std::function<void(std::vector<Id>&)>& sink) {
  std::vector<std::vector<Id>> ids;
  try {
    ids = tokenizer.encode({batch.begin(), batch.end()}, threads);
  } catch (const Error& error) {
    throw Error(file == "-" ? "stdin" : file, 0, error.what());
  }
  for (std::vector<Id>& document : ids) sink(document);
  batch.clear();
}

}  // namespace

void tokenize(const Tokenizer& tokenizer, const Texts& texts, int threads,
              const std::function<void(std::vector<Id>&)>& sink) {
  constexpr std::size_t kBatch = 1 << 26;
  for (const std::string& file : texts.files) {
    DocumentReader documents(file, texts.text_key);
    std::vector<std::string> batch;
    std::size_t bytes = 0;
    for (std::string document; documents.next(document);) {
      bytes += document.size();
      batch.push_back(std::move(document));
      if (bytes < kBatch) continue;
      encode_batch(tokenizer, file, batch, threads, sink);
      bytes = 0;
    }
    encode_batch(tokenizer, file, batch, threads, sink);
  }
}

int processors() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

}  // namespace zs::token
