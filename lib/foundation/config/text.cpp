// SPDX-License-Identifier: Apache-2.0
// A configuration as YAML text: reading and writing.
#include <algorithm>
#include <memory>
#include <unordered_map>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/secret.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "config/config.hpp"
#include "config/yaml.hpp"

namespace zs::config {
namespace {

/// Adds the values below `node`, whose keys begin with `prefix`.
void flatten(const YAML::Node& node, const std::string& prefix, const std::string& name, Config& config) {
  const std::string what = prefix.empty() ? "a configuration" : "'" + prefix.substr(0, prefix.size() - 1) + "'";
  for (const Pair& pair : pairs(node, name, what)) {
    Entry entry = entry_of_node(prefix + pair.key, name + ":" + std::to_string(pair.line), pair.value);
    if (pair.value.IsMap() && pair.value.size() > 0) {
      flatten(pair.value, entry.key + ".", name, config);
      continue;
    }
    if (const Entry* const earlier = config.find(entry.key)) {
      throw Error(entry.origin, 0,
                  "'" + entry.key + "' is given twice, first as '" + earlier->key + "' in " + earlier->origin);
    }
    config.set(std::move(entry));
  }
}

/// Keys as a tree, in order of first appearance.
struct Branch {
  std::string word;
  const Entry* entry = nullptr;
  std::vector<std::unique_ptr<Branch>> children;
  std::unordered_map<std::string, Branch*> by_word;
};

Branch& child(Branch& parent, const std::string& word) {
  Branch*& branch = parent.by_word[word];
  if (!branch) branch = parent.children.emplace_back(std::make_unique<Branch>(Branch{word, nullptr, {}, {}})).get();
  return *branch;
}

bool is_document(const std::string& text) {
  try {
    return document(text, "").IsDefined();
  } catch (const Error&) {
    return false;
  }
}

void write(const Branch& branch, int depth, std::string& out) {
  for (const auto& next : branch.children) {
    std::string line(static_cast<std::size_t>(depth) * 2, ' ');
    line += scalar_text(next->word, true) + ":";
    if (next->entry) {
      const Entry& entry = *next->entry;
      const bool scalar = entry.kind == Kind::plain || entry.kind == Kind::quoted;
      line += " " + (scalar                     ? scalar_text(entry.value, entry.kind == Kind::quoted)
                     : entry.kind == Kind::null ? "null"
                                                : entry.value);
      constexpr std::size_t kCommentColumn = 44;
      if (line.size() < kCommentColumn) line.resize(kCommentColumn, ' ');
      line += "  # " + printable(entry.origin);
    }
    out += line + "\n";
    write(*next, depth + 1, out);
  }
}

}  // namespace

Config Config::read(const std::string& path) {
  Input input(path);
  return parse(input.read_all(), input.name());
}

Config Config::parse(std::string_view yaml, const std::string& name) {
  Config config;
  flatten(document(yaml, name), "", name, config);
  return config;
}

std::string Config::to_yaml() const {
  Branch root;
  std::vector<Entry> entries = entries_;
  for (Entry& entry : entries) {
    const bool whole = entry.kind == Kind::list && !is_document(withheld(entry.key, entry.value));
    entry.value = whole ? kWithheld : withheld(entry.key, entry.value);
  }
  for (const Entry& entry : entries) {
    Branch* branch = &root;
    for (const std::string& word : split(entry.key, ".")) branch = &child(*branch, word);
    branch->entry = &entry;
  }
  std::string out;
  write(root, 0, out);
  return out;
}

}  // namespace zs::config
