// SPDX-License-Identifier: Apache-2.0
#include "token/tokenize.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
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

constexpr std::string_view kBlank = " \t\r\n";

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

void share(std::size_t pieces, int threads, const std::function<void(const Take&)>& worker) {
  std::atomic<std::size_t> next = 0;
  std::mutex failing;
  std::exception_ptr failure;
  const Take take = [&](std::size_t& piece) { return (piece = next++) < pieces; };
  const auto run = [&] {
    try {
      worker(take);
    } catch (...) {
      next = pieces;
      const std::scoped_lock lock(failing);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < std::min(pieces, static_cast<std::size_t>(threads)); ++i) helpers.emplace_back(run);
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

std::string ids_text(const std::vector<Id>& ids) {
  std::string text;
  std::array<char, 16> digits;
  for (const Id id : ids) {
    if (!text.empty()) text += ' ';
    text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), id).ptr);
  }
  return text += '\n';
}

void read_ids(const std::string& path, Id vocabulary, const std::function<void(const std::vector<Id>&)>& sink) {
  Input input(path);
  const std::string text = input.read_all();
  std::string_view rest = text;
  for (std::int64_t line = 1; !rest.empty(); ++line) {
    std::string_view words = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(words.size() + 1, rest.size()));
    std::vector<Id> ids;
    while (true) {
      words.remove_prefix(std::min(words.find_first_not_of(kBlank), words.size()));
      if (words.empty()) break;
      const std::string_view word = words.substr(0, words.find_first_of(kBlank));
      words.remove_prefix(word.size());
      Id id = 0;
      const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), id);
      if (failure != std::errc() || end != word.data() + word.size() || id >= vocabulary) {
        throw Error(input.name(), line,
                    "'" + printable(word.substr(0, 40)) + "' is not an id below " + std::to_string(vocabulary));
      }
      ids.push_back(id);
    }
    sink(ids);
  }
}

void read_documents(const TokenFile& file, std::optional<Id> separator,
                    const std::function<void(const std::vector<Id>&)>& sink) {
  std::vector<Id> ids;
  for (std::int64_t i = 0; i < file.count(); ++i) {
    ids.push_back(file.id(i));
    if (ids.back() != separator && i + 1 < file.count()) continue;
    sink(ids);
    ids.clear();
  }
}

}  // namespace zs::token
