// SPDX-License-Identifier: Apache-2.0
#include "token/ids.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/text.hpp"

namespace zs::token {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

}  // namespace

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
