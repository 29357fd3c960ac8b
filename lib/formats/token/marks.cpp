// SPDX-License-Identifier: Apache-2.0
#include "token/marks.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"

namespace zs::token {
namespace {

struct Head {
  std::array<char, 16> magic{'z', 's', ' ', 'm', 'a', 'r', 'k', 's', ' ', '1', '\n'};
  std::uint64_t count = 0;
  XXH128_canonical_t sum{};
};
static_assert(sizeof(Head) == 40);

std::string_view bytes_of(const Head& head) { return {reinterpret_cast<const char*>(&head), sizeof head}; }

XXH128_canonical_t canonical(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  return bytes;
}

XXH128_canonical_t sum_of(const TokenFile& tokens) {
  constexpr std::int64_t kPart = 1 << 16;
  XXH3_state_t* const state = XXH3_createState();
  XXH3_128bits_reset(state);
  std::vector<Id> ids;
  for (std::int64_t first = 0; first < tokens.count(); first += kPart) {
    ids.resize(static_cast<std::size_t>(std::min(kPart, tokens.count() - first)));
    tokens.copy(first, static_cast<std::int64_t>(ids.size()), ids.data());
    XXH3_128bits_update(state, ids.data(), ids.size() * sizeof(Id));
  }
  const XXH128_canonical_t sum = canonical(XXH3_128bits_digest(state));
  XXH3_freeState(state);
  return sum;
}

}  // namespace

std::string marks_path(const std::string& token_file) {
  return std::filesystem::path(token_file).replace_extension(".mask").string();
}

Marks::Marks(const TokenFile& tokens) : mapping_(Mapping::open(marks_path(tokens.path()))) {
  const auto wrong = [&](const std::string& what) { throw Error(mapping_->path(), 0, what); };
  const std::string_view bytes = mapping_->bytes();
  Head head;
  if (bytes.size() < sizeof head || bytes.substr(0, head.magic.size()) != bytes_of(head).substr(0, head.magic.size()))
    wrong("is not a file of marks as zs-tokenize writes it for a token file: remove it, or make both again");
  std::memcpy(&head, bytes.data(), sizeof head);
  marks_ = bytes.substr(sizeof head);
  if (marks_.size() != head.count)
    wrong("has " + std::to_string(marks_.size()) + " marks, and its header says " + std::to_string(head.count));
  const XXH128_canonical_t sum = sum_of(tokens);
  if (head.count != static_cast<std::uint64_t>(tokens.count()) || std::memcmp(&sum, &head.sum, sizeof sum) != 0)
    wrong("has the marks of other tokens than " + tokens.path() + ": remove it, or make both again with zs-tokenize");
  const auto odd = std::ranges::find_if(marks_, [](char mark) { return (mark & ~(kTrained | kBegins)) != 0; });
  if (odd != marks_.end())
    wrong("has the mark " + std::to_string(static_cast<unsigned char>(*odd)) + " at " +
          std::to_string(odd - marks_.begin()) + ", which is not known");
}

void Marks::copy(std::int64_t first, std::span<Mark> out) const {
  std::memcpy(out.data(), marks_.data() + first, out.size());
}

MarkedWriter::MarkedWriter(const std::string& path, Layout layout, Id vocabulary)
    : tokens_(path, layout, vocabulary), marks_(marks_path(path)), sum_(XXH3_createState()) {
  XXH3_128bits_reset(sum_);
  if (path == marks_path(path)) throw Error(path, 0, "is the name of a token file's marks: name the token file *.bin");
  marks_.write(bytes_of(Head()));
}

MarkedWriter::~MarkedWriter() { XXH3_freeState(sum_); }

void MarkedWriter::write(const std::vector<Id>& ids, const std::vector<Mark>& marks) {
  tokens_.write(ids);
  XXH3_128bits_update(sum_, ids.data(), ids.size() * sizeof(Id));
  marks_.write({reinterpret_cast<const char*>(marks.data()), marks.size()});
}

void MarkedWriter::commit() {
  tokens_.check();  // before the marks of an earlier file are replaced
  Head head;
  head.count = static_cast<std::uint64_t>(tokens_.count());
  head.sum = canonical(XXH3_128bits_digest(sum_));
  marks_.rewrite(0, bytes_of(head));
  marks_.commit();
  tokens_.commit();
}

}  // namespace zs::token
