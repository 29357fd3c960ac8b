// SPDX-License-Identifier: Apache-2.0
#include "parse/custom.hpp"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>

#include "base/file.hpp"
#include "parse/dialect.hpp"
#include "parse/run.hpp"

namespace zs::parse {
namespace {

Custom& own() {
  static Custom custom;
  return custom;
}

/// The user's default file; "" if there is none.
std::string usual_file() {
  const char* const folder = std::getenv("XDG_CONFIG_HOME");
  const char* const home = std::getenv("HOME");
  const bool given = folder && *folder;
  if (!given && !(home && *home)) return "";
  const std::filesystem::path path =
      (given ? std::filesystem::path(folder) : std::filesystem::path(home) / ".config") / "zs/patterns";
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) ? path.string() : "";
}

}  // namespace

const Custom& custom() { return own(); }

void customize(const std::string& file, std::function<void(const std::string&)> note) {
  // Reports similar logs only once.
  const auto told = std::make_shared<std::set<std::string>>();
  own() = Custom{{}, {}, {}};
  if (note) {
    own().note = [told, note = std::move(note)](const std::string& text) {
      if (told->insert(text.substr(std::min(text.find(": "), text.size()))).second) note(text);
    };
  }
  const std::string path = file.empty() ? usual_file() : file;
  if (path.empty()) return;
  Input input(path);
  const std::string text = input.read_all();
  std::int64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = trimmed(std::string_view(text).substr(at, end - at));
    if (line.ends_with('\r')) line = trimmed(line.substr(0, line.size() - 1));
    at = end + 1;
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    try {
      if (skip(line, "map ")) {
        own().map.merge(map_of(std::string(trimmed(line)), "map"));
      } else {
        make_pattern(std::string(line), "pattern");
        own().patterns.emplace_back(line);
      }
    } catch (const UsageError& error) {
      throw Error(input.name(), number, error.what());
    }
  }
}

}  // namespace zs::parse
