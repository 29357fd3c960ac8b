// SPDX-License-Identifier: Apache-2.0
#include "token/cache.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include <ctime>
#include <filesystem>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "base/host.hpp"
#include "base/mapped.hpp"
#include "base/number.hpp"
#include "token/document.hpp"
#include "token/file.hpp"
#include "token/tokenize.hpp"

namespace zs::token {
namespace {

namespace fs = std::filesystem;

std::string hex(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  return to_hex({reinterpret_cast<const char*>(bytes.digest), sizeof bytes.digest});
}

/// A line about a file: its name's ending, which decides how it is read, and its bytes.
std::string line_of(const std::string& path) {
  const auto mapping = Mapping::open(path);
  const std::string_view bytes = mapping->bytes();
  return hex(XXH3_128bits(bytes.data(), bytes.size())) + " " + (names_json_lines(path) ? "jsonl" : "text") + "\n";
}

/// While it is open, lets one of the processes that share a folder create files in it, and the others wait; if the file
/// system does not support that, all create them.
Descriptor turn_in(const std::string& folder) {
  Descriptor open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (open >= 0) ::flock(open, LOCK_EX);
  return open;
}

}  // namespace

std::vector<Tokenized> cached(const std::string& path, const std::string& tokenizer, const std::string& folder,
                              const Making& making, std::vector<std::string>& left_out) {
  std::string base = making.base;
  std::vector<std::string> depends_on = tokenizer_files(tokenizer);
  depends_on.insert(depends_on.end(), making.depends_on.begin(), making.depends_on.end());
  for (const std::string& file : depends_on) base += fs::path(file).filename().string() + " " + line_of(file);
  std::error_code failure;
  const auto parts = fs::is_directory(path, failure) ? divisions(path, left_out) : std::vector<Division>{{"", {path}}};
  std::unique_ptr<Tokenizer> opened;
  std::vector<Tokenized> tokenized;
  for (const Division& part : parts) {
    std::string key = base;
    for (const std::string& file : part.files) key += line_of(file);
    const std::string name = folder + "/" + hex(XXH3_128bits(key.data(), key.size())) + ".bin";
    tokenized.push_back({part.name, name});
    if (fs::exists(name, failure)) continue;
    fs::create_directories(folder, failure);
    if (failure) throw Error(folder, 0, failure.message());
    const Descriptor turn = turn_in(folder);
    if (fs::exists(name, failure)) continue;
    if (!opened) opened = open_tokenizer(tokenizer);
    making.make(part.files, *opened, name);
  }
  return tokenized;
}

std::vector<Tokenized> tokenized(const std::string& path, const std::string& tokenizer, const std::string& folder,
                                 int threads, std::vector<std::string>& left_out, const std::string& text_key) {
  Making making;
  making.base = "zs tokens 1\n";  // another number, when what is made of the same files becomes another
  if (!text_key.empty()) making.base += "key " + text_key + "\n";
  making.make = [&](const std::vector<std::string>& files, const Tokenizer& opened, const std::string& to) {
    const auto end = opened.end_of_text();
    if (!end) throw Error(tokenizer, 0, "names no end of text: make a token file by zs-tokenize --separator TOKEN");
    TokenWriter writer(to, Layout::llmc, opened.size());
    tokenize(opened, {files, text_key}, threads, [&](std::vector<Id>& ids) {
      ids.push_back(*end);
      writer.write(ids);
    });
    writer.commit();
  };
  return cached(path, tokenizer, folder, making, left_out);
}

std::string today() { return fmt::format("{:%F}", fmt::localtime(std::time(nullptr))); }

std::string token_cache() {
  for (const auto& [variable, below] :
       {std::pair{"ZS_CACHE", "/tokens"}, {"XDG_CACHE_HOME", "/zs/tokens"}, {"HOME", "/.cache/zs/tokens"}}) {
    if (const std::string folder = environment_variable(variable); !folder.empty()) return folder + below;
  }
  throw Error("no folder for tokens: set ZS_CACHE, XDG_CACHE_HOME or HOME");
}

}  // namespace zs::token
