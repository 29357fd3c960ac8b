// SPDX-License-Identifier: Apache-2.0
#include "experiment/plan.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/secret.hpp"
#include "base/shell.hpp"
#include "experiment/command.hpp"
#include "registry/run.hpp"

namespace zs::experiment {
namespace {

struct Training {
  std::string name;
  std::vector<std::string> words;  ///< of the command line
  config::Config config;
};

Training training_of(const cli::Command& command, const std::string& line) {
  std::vector<std::string> words;
  try {
    words = nlohmann::json::parse(line).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    throw UsageError("a plan's line is a JSON list, [\"NAME\", \"WORD\", ...], not " + line);
  }
  if (words.empty() || words[0].empty()) throw UsageError("a training of the plan has no name");
  const std::string name = words[0];
  words.erase(words.begin());
  try {
    const cli::Args args = cli::Args::parse(command, words);
    return {name, without_secrets(words), configuration(args)};
  } catch (const Error& error) {
    throw Error(name + ": " + error.what());
  }
}

}  // namespace

std::string Planned::json() const { return nlohmann::ordered_json{{"command", command}, {"arguments", words}}.dump(); }

std::vector<Planned> plan(std::string_view lines, const registry::Fields& fields) {
  const cli::Command command = train_command();
  std::vector<Training> trainings;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    if (end > 0) trainings.push_back(training_of(command, std::string(lines.substr(0, end))));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  std::vector<Planned> planned;
  const auto withdraw = [&] {
    for (const Planned& each : planned) {
      const std::filesystem::path path(each.folder);
      registry::remove(path.parent_path().string(), path.filename().string());
    }
  };
  try {
    for (const Training& training : trainings) {
      const std::string place = std::filesystem::absolute(registry::place(training.config.text("run.output_dir")))
                                    .lexically_normal()
                                    .string();
      registry::Fields all = fields;
      registry::set(all, "condition", training.name);
      const std::string line = shell_quoted({command.name}) + " " + shell_quoted(training.words);
      registry::set(all, "command", line);
      planned.push_back({training.name, registry::Run::plan(place, training.config, training.name, all).folder(), line,
                         training.words});
    }
  } catch (const std::exception&) {
    withdraw();
    throw;
  }
  return planned;
}

}  // namespace zs::experiment
