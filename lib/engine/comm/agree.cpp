// SPDX-License-Identifier: Apache-2.0
#include "comm/agree.hpp"

#include <xxhash.h>

#include <algorithm>
#include <new>

namespace zs::comm {
namespace {

std::string place(const Group& group, int rank) { return "rank " + std::to_string(rank) + " on " + group.host(rank); }

/// Facts as one blob: each name and value with its length, so that no character is special.
std::string packed(const Facts& facts) {
  std::string blob;
  const auto add = [&](const std::string& text) { blob += std::to_string(text.size()) + ":" + text; };
  for (const auto& [name, value] : facts) add(name), add(value);
  return blob;
}

Facts unpacked(const std::string& blob) {
  Facts facts;
  std::size_t at = 0;
  const auto next = [&] {
    const std::size_t colon = blob.find(':', at), size = std::stoull(blob.substr(at, colon - at));
    at = colon + 1 + size;
    return blob.substr(colon + 1, size);
  };
  while (at < blob.size()) {
    std::string name = next(), value = next();
    facts.emplace_back(std::move(name), std::move(value));
  }
  return facts;
}

/// The value of a fact for a message.
std::string value_text(const Facts& facts, const std::string& name) {
  const auto found = std::find_if(facts.begin(), facts.end(), [&](const auto& fact) { return fact.first == name; });
  if (found == facts.end()) return "not set";
  return found->second.empty() ? "empty" : found->second;
}

/// Throws for the first name, in the order of `mine`, then of `theirs`, whose values differ.
void require_same(const Group& group, const Facts& mine, const Facts& theirs, int rank, const std::string& what) {
  for (const Facts* const each : {&mine, &theirs}) {
    for (const auto& fact : *each) {
      const std::string here = value_text(mine, fact.first), other = value_text(theirs, fact.first);
      if (here == other) continue;
      throw SharedError(what + ": the ranks differ in " + fact.first + ": it is " + here + " for " + place(group, 0) +
                        ", " + other + " for " + place(group, rank) + "; every rank must have the same");
    }
  }
}

}  // namespace

void barrier(Group& group, const std::string& what) { group.all_gather_object("", what); }

std::string broadcast(Group& group, const std::string& text, int root, const std::string& what) {
  return group.all_gather_object(group.rank() == root ? text : "", what)[static_cast<std::size_t>(root)];
}

void together(Group& group, const std::string& what, const std::function<void()>& body) {
  if (group.size() == 1) return body();
  std::string problem;
  try {
    body();
  } catch (const std::bad_alloc&) {
    problem = "out of memory";
  } catch (const std::exception& error) {
    problem = error.what();
    if (problem.empty()) problem = "failed";
  }
  const std::vector<std::string> texts = group.all_gather_object(problem, what);
  const auto first = std::find_if(texts.begin(), texts.end(), [](const std::string& text) { return !text.empty(); });
  if (first == texts.end()) return;
  const bool shared = std::all_of(texts.begin(), texts.end(), [&](const std::string& text) { return text == *first; });
  throw SharedError(shared ? *first : place(group, static_cast<int>(first - texts.begin())) + ": " + *first);
}

void require_same(Group& group, const Facts& facts, const std::string& what) {
  if (group.size() == 1) return;
  const std::string mine = packed(facts);
  const XXH128_hash_t hash = XXH3_128bits(mine.data(), mine.size());
  const auto hashes = exchange_values(group, hash, what);
  const bool same = std::all_of(hashes.begin(), hashes.end(),
                                [&](const XXH128_hash_t& other) { return XXH128_isEqual(other, hashes[0]) != 0; });
  if (same) return;
  // Every rank has seen the same hashes, and comes here.
  const std::vector<std::string> packets = group.all_gather_object(mine, what);
  const Facts root = unpacked(packets[0]);
  for (int rank = 1; rank < group.size(); ++rank)
    require_same(group, root, unpacked(packets[static_cast<std::size_t>(rank)]), rank, what);
  throw SharedError(what + ": the ranks have the same facts in another order");
}

}  // namespace zs::comm
