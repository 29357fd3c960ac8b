// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>

#include "attribute/table.hpp"
#include "base/words.hpp"

namespace zs::attribute {
namespace {

/// Every fixed name of every row, and the rows whose name is a beginning.
struct Index {
  std::map<std::string_view, const Attribute*> names;
  std::vector<const Attribute*> beginnings;

  Index() {
    for (const Attribute& row : table()) {
      if (row.name.ends_with('*')) {
        beginnings.push_back(&row);
        continue;
      }
      for (std::string_view name : {row.name, row.key, row.column}) {
        if (!name.empty()) names.emplace(name, &row);
      }
      for (const std::string_view alias : words_of(row.aliases)) names.emplace(alias, &row);
    }
  }
};

}  // namespace

std::string_view name(Role role) {
  static constexpr std::array<std::string_view, 5> kNames = {"decides", "arithmetic", "layout", "measurement",
                                                             "identity"};
  return kNames[static_cast<std::size_t>(role)];
}

const Attribute* find(std::string_view any_name) {
  static const Index index;
  const auto found = index.names.find(any_name);
  if (found != index.names.end()) return found->second;
  for (const Attribute* const row : index.beginnings) {
    if (any_name.starts_with(row->name.substr(0, row->name.size() - 1))) return row;
  }
  return nullptr;
}

Role role(std::string_view any_name) {
  const Attribute* const row = find(any_name);
  return row ? row->role : Role::decides;
}

std::string_view primary(std::string_view any_name) {
  const Attribute* const row = find(any_name);
  return row && !row->name.ends_with('*') ? row->name : any_name;
}

std::vector<std::string> in_order(std::vector<std::string> names) {
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    const Attribute *const x = find(a), *const y = find(b);
    if (x != y) return x && y ? x < y : x != nullptr;
    return a < b;
  });
  return names;
}

std::string_view column(const Attribute& row) {
  return !row.column.empty() ? row.column : !row.key.empty() ? row.key : row.name;
}

std::string_view label(std::string_view any_name) {
  const Attribute* const row = find(any_name);
  return row && !row->name.ends_with('*') ? row->label : any_name;
}

}  // namespace zs::attribute
