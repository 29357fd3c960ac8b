// SPDX-License-Identifier: Apache-2.0
#include "experiment/foreign.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/name.hpp"
#include "base/words.hpp"
#include "checkpoints/folders.hpp"
#include "config/foreign.hpp"
#include "registry/record.hpp"

namespace zs::experiment {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using registry::set;

constexpr std::string_view kCheckpoint = "{checkpoint}", kResume = "{resume}";

/// The configuration at the front of a cell's words; "" if there is none.
std::string configuration_path(const Cell& cell) {
  return !cell.arguments.empty() && !cell.arguments[0].starts_with("-") ? cell.arguments[0] : "";
}

const std::string& option(const Options& options, const std::string& key, const Cell& cell) {
  std::vector<std::string> names;
  for (const auto& [name, value] : options) {
    if (name == key) return value;
    names.push_back(name);
  }
  throw Error(cell.name + ": {" + key + "}: it has no option '" + key + "'" + did_you_mean(key, names) +
              "; {{ is a brace");
}

std::string as_words(const Options& options) {
  std::vector<std::string> words;
  for (const auto& [key, value] : options) {
    if (value == "false") continue;
    words.push_back("--" + key);
    if (value == "true") continue;
    // Several values of one option.
    for (const std::string& word : shell_words(value)) words.push_back(word);
  }
  return shell_quoted(words);
}

/// A value as JSON: a number, a truth value, else a text; several as a list.
Json json_of(const std::string& quoted) {
  Json list = Json::array();
  for (const std::string& word : shell_words(quoted)) {
    Json value = Json::parse(word, nullptr, false);
    list.push_back(value.is_discarded() ? Json(word) : value);
  }
  return list.size() == 1 ? list[0] : list;
}

/// A value without the quotes.
std::string plain(const std::string& quoted) { return joined(shell_words(quoted), " "); }

/// "ds.json zero_optimization.stage=zero_stage": adds the file, and gives its path.
std::string add_file(const std::string& words, const Options& options, const Cell& cell, const std::string& folder,
                     Filled& filled) {
  const std::vector<std::string> parts = shell_words(words);
  if (parts.empty()) throw Error(cell.name + ": {file:} names no file");
  const std::string& path = parts[0];
  Json content = read_json<Json>(path);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(cell.name + ": {file:" + words + "}: '" + parts[i] + "' is not SECTION.KEY=OPTION");
    Json* place = &content;
    std::string rest = parts[i].substr(0, equals);
    for (std::size_t dot; (dot = rest.find('.')) != std::string::npos; rest.erase(0, dot + 1))
      place = &(*place)[rest.substr(0, dot)];
    (*place)[rest] = json_of(option(options, parts[i].substr(equals + 1), cell));
  }
  const std::string name = fs::path(path).filename().string();
  filled.files.emplace_back(name, content.dump(2) + "\n");
  return folder + "/" + name;
}

void replace(std::string& text, std::string_view what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

bool is_name(const std::string& text) {
  return !text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) || text[0] == '_') &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
}

}  // namespace

static Options options_of(const Cell& cell, const config::Config* known) {
  Options options;
  std::size_t at = 0;
  if (const std::string path = configuration_path(cell); !path.empty()) {
    const config::Config config = known ? *known : config::Config::read(path);
    for (const config::Entry& entry : config.entries()) {
      const bool of_run = entry.key.starts_with("run.") || entry.key == "sweep_name";
      if (of_run || entry.kind == config::Kind::null) continue;
      const bool list = entry.kind == config::Kind::list && entry.value.starts_with("[");
      set(options, entry.key.substr(entry.key.rfind('.') + 1),
          shell_quoted(list ? config.list(entry.key) : std::vector<std::string>{entry.value}));
    }
    at = 1;
  }
  while (at < cell.arguments.size()) {
    const std::string& word = cell.arguments[at++];
    if (!word.starts_with("--") || word.size() < 3)
      throw Error(cell.name + ": '" + word + "' is not an option: --key value, or --key");
    const std::size_t equals = word.find('=');
    std::string value;
    if (equals != std::string::npos) {
      value = shell_quoted({word.substr(equals + 1)});
    } else {
      std::vector<std::string> values;
      while (at < cell.arguments.size() && !cell.arguments[at].starts_with("--"))
        values.push_back(cell.arguments[at++]);
      value = values.empty() ? "true" : shell_quoted(values);
    }
    set(options, word.substr(2, std::min(equals, word.size()) - 2), value);
  }
  return options;
}

Options options_of(const Cell& cell) { return options_of(cell, nullptr); }

/// Like fill() of the header. With `goes_on` {checkpoint} stays; `known` is the cell's configuration if not in its
/// file.
static Filled fill(const std::string& command, const Cell& cell, const std::string& folder, bool goes_on,
                   const config::Config* known = nullptr) {
  const Options options = options_of(cell, known);
  Filled filled;
  bool asked = false;
  for (std::size_t at = 0; at < command.size();) {
    const char c = command[at];
    const std::size_t end = c == '{' ? command.find('}', at) : std::string::npos;
    const bool of_shell = at > 0 && command[at - 1] == '$';
    if (c == '{' && command.compare(at, 2, "{{") == 0) {
      filled.line += '{';
      at += 2;
      continue;
    }
    const std::string name = end == std::string::npos || of_shell ? "" : command.substr(at + 1, end - at - 1);
    if (name.starts_with("file:")) {
      filled.line += shell_quoted({add_file(name.substr(5), options, cell, folder, filled)});
      asked = true;
    } else if (name == "options") {
      filled.line += as_words(options);
      asked = true;
    } else if (name == "run") {
      filled.line += shell_quoted({folder});
    } else if (name == "resume") {
    } else if (name == "checkpoint" && goes_on) {
      filled.line += kCheckpoint;
    } else if (name == "config" && !configuration_path(cell).empty()) {
      filled.line += shell_quoted({configuration_path(cell)});
      asked = true;
    } else if (is_name(name)) {
      filled.line += option(options, name, cell);
      asked = true;
    } else {
      filled.line += c;
      ++at;
      continue;
    }
    at = end + 1;
  }
  if (const std::string words = as_words(options); !asked && !words.empty()) filled.line += " " + words;
  return filled;
}

Filled fill(const std::string& command, const Cell& cell, const std::string& folder) {
  return fill(command, cell, folder, false);
}

void require_options(const std::string& command, const std::string& resume, const Cell& cell,
                     const config::Config& config) {
  fill(command, cell, "", false, &config);
  fill(resume, cell, "", true, &config);
}

std::string fill_resumed(const std::string& command, const std::string& resume, const Cell& cell,
                         const std::string& folder) {
  std::string whole = command;
  if (whole.find(kResume) == std::string::npos) whole += " " + std::string(kResume);
  replace(whole, kResume, resume);
  return fill(whole, cell, folder, true).line;
}

std::string line_to_start(const registry::Fields& record, const std::string& folder, std::string& from) {
  const std::string line = registry::value(record, "run_command");
  std::string resumed = registry::value(record, "resume_with");
  if (resumed.empty() || !fs::exists(folder + "/run.log")) return line;
  if (resumed.find(kCheckpoint) == std::string::npos) return resumed;
  from = checkpoints::newest_whole(folder);
  if (from.empty()) return line;
  replace(resumed, kCheckpoint, shell_quoted({from}));
  return resumed;
}

config::Config foreign_configuration(const Filled& filled, const Cell& cell) {
  std::vector<std::string> settings;
  for (const auto& [key, value] : options_of(cell)) settings.push_back(key + "=" + plain(value));
  std::vector<std::string> words;
  try {
    words = shell_words(filled.line);
  } catch (const Error& error) {
    throw Error(cell.name + ": " + error.what());
  }
  return config::foreign_configuration(words, {}, settings);
}

}  // namespace zs::experiment
