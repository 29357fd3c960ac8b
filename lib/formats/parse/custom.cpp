// SPDX-License-Identifier: Apache-2.0
#include "parse/custom.hpp"

#include <filesystem>
#include <memory>
#include <set>

#include "base/file.hpp"
#include "base/host.hpp"
#include "base/words.hpp"
#include "parse/dialect.hpp"
#include "parse/run.hpp"

namespace zs::parse {
namespace {

Custom& own() {
  static Custom custom;
  return custom;
}

/// The user's default file; "" if there is no place for one.
std::string usual_place() {
  const std::string folder = environment_variable("XDG_CONFIG_HOME"), home = environment_variable("HOME");
  if (folder.empty() && home.empty()) return "";
  std::filesystem::path place = folder;
  if (folder.empty()) place = std::filesystem::path(home) / ".config";
  return (place / "zs/patterns").string();
}

/// The same; "" if it is not there.
std::string usual_file() {
  const std::string path = usual_place();
  return !path.empty() && is_file(path) ? path : "";
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
  std::int64_t number = 0;
  for (const std::string& text : lines_of(input.read_all())) {
    std::string_view line = trimmed(text);
    if (line.ends_with('\r')) line = trimmed(line.substr(0, line.size() - 1));
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

std::pair<std::string, std::string> learn(const std::string& log, const std::string& file) {
  metric::Run run;
  metric::MemoryWriter rows(run);
  const Options options;
  const FaultSink sink = [](const Fault&) {};
  LogReader reader(options, rows, sink);
  reader.read(log);
  reader.finish();
  if (reader.stats().records > 0) throw Error(log, 0, "is read already: zs-parse needs no pattern for it");
  const std::string pattern = reader.suggestion();
  if (pattern.empty())
    throw Error(log, 0,
                "has no pattern that gives a step and a loss on each of its likely lines: write one by hand, see "
                "--pattern");
  const std::string path = file.empty() ? usual_place() : file;
  if (path.empty()) throw Error("there is no $HOME for a pattern file: name one with --patterns FILE");
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  const bool known = is_file(path);
  std::string text = known ? Input(path).read_all() : "";
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  text += "# learned from " + log + "\n" + pattern + "\n";
  Output out(path);
  out.write(text);
  out.commit();
  return {path, pattern};
}

}  // namespace zs::parse
