// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>

#include "base/folder.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "base/secret.hpp"
#include "base/words.hpp"

namespace zs::cli {
namespace {

namespace po = boost::program_options;

const Option& row(const Command& command, const std::string& name) {
  const auto found = std::ranges::find_if(command.options, [&](const Option& o) { return o.name == name; });
  if (found == command.options.end()) throw std::logic_error(command.name + " has no option " + name);
  return *found;
}

/// "--sort-by=x" -> "--sort_by=x"; everything else as it is.
std::string with_underscores(std::string word) {
  if (word.size() <= 2 || !word.starts_with("--")) return word;
  const std::size_t end = std::min(word.find('='), word.size());
  std::replace(word.begin() + 2, word.begin() + static_cast<std::ptrdiff_t>(end), '-', '_');
  return word;
}

/// Whether the word is an option whose value is the next word, even if that begins with "--".
bool takes_next(const Command& command, const std::string& word) {
  return std::ranges::any_of(command.options, [&](const Option& option) {
    return !option.value.empty() && !option.many &&
           (word == "--" + option.name || (option.letter && word == std::string("-") + option.letter));
  });
}

bool has_option(const Command& command, const std::string& name) {
  return std::ranges::any_of(command.options, [&](const Option& o) { return o.name == name; });
}

bool is_option(const Command& command, const std::string& word) {
  return word.starts_with("--") && has_option(command, word.substr(2, word.find('=') - 2));
}

/// The row of an option whose value may be left out, typed without "=": null of any other word.
const Option* may_stand_alone(const Command& command, const std::string& word) {
  const auto found = std::ranges::find_if(
      command.options, [&](const Option& option) { return !option.alone.empty() && word == "--" + option.name; });
  return found == command.options.end() ? nullptr : &*found;
}

po::options_description described(const Command& command) {
  po::options_description table;
  for (const Option& option : command.options) {
    const std::string name = option.name + (option.letter ? std::string(",") + option.letter : "");
    if (option.value.empty()) {
      table.add_options()(name.c_str(), "");
    } else if (option.many) {
      table.add_options()(name.c_str(), po::value<std::vector<std::string>>()->multitoken()->composing(), "");
    } else {
      table.add_options()(name.c_str(), po::value<std::vector<std::string>>(), "");
    }
  }
  return table;
}

/// Names of an option in other programs, if its row has none.
struct Synonyms {
  std::string_view option, words;
  std::string_view value{};  ///< with which it means the same
};
constexpr auto kSynonyms = std::to_array<Synonyms>({
    {"output", "out outfile output_file save save_to dest"},
    {"format", "fmt type output_format"},
    {"filter", "where query select"},
    {"sort_by", "order order_by orderby"},
    {"registry", "runs runs_dir folder dir"},
    {"smooth", "smoothing ema window"},
    {"log", "logy log_y logscale log_scale"},
    {"xaxis", "x x_axis"},
    {"baseline", "base reference ref"},
    {"by", "group group_by groupby"},
    {"warmup", "skip burn_in discard"},
    {"model_name", "model"},
    {"model_name", "load_weights", "FOLDER"},
    {"save_initial", "save_weights", "DIR"},
    {"passes", "offload_opt_states", "offload_adam_states"},
});

/// What to type for the word of another program: "zero_stage", or "save_initial DIR"; "" if it is not this option.
std::string instead(const std::string& word, const Option& option) {
  if (std::ranges::find(option.meant, word) != option.meant.end()) return option.name;
  for (const Synonyms& row : kSynonyms) {
    if (row.option == option.name && has_word(row.words, word))
      return option.name + (row.value.empty() ? "" : " " + std::string(row.value));
  }
  return "";
}

[[noreturn]] void explain(const Command& command, const po::error& error) {
  if (const auto* unknown = dynamic_cast<const po::unknown_option*>(&error)) {
    std::string name = unknown->get_option_name();
    name.resize(std::min(name.find('='), name.size()));
    const std::string word = name.substr(std::min(name.find_first_not_of('-'), name.size()));
    std::vector<std::string> known;
    for (const Option& option : command.options) {
      if (const std::string typed = instead(word, option); !typed.empty())
        throw UsageError("unknown option '" + name + "', did you mean '--" + typed + "'?");
      known.push_back(option.name);
    }
    const std::vector<std::string> near = nearest(word, known);
    throw UsageError("unknown option '" + name + "'" + (near.empty() ? "" : ", did you mean '--" + near[0] + "'?"));
  }
  if (const auto* with_name = dynamic_cast<const po::error_with_option_name*>(&error)) {
    std::string name = with_name->get_option_name();
    if (dynamic_cast<const po::invalid_command_line_syntax*>(&error)) {
      const bool extra = std::string(error.what()).find("extra") != std::string::npos ||
                         std::string(error.what()).find("does not take") != std::string::npos;
      throw UsageError("option '" + name + "' " + (extra ? "takes no value" : "needs a value"));
    }
    throw UsageError("option '" + name + "': " + error.what());
  }
  throw UsageError(error.what());
}

/// The words as Boost parses them: names of options with underscores, lists joined by commas, an option that may stand
/// alone with its value. `behind` gets the words behind "--".
std::vector<std::string> normal_words(const Command& command, const std::vector<std::string>& words,
                                      std::vector<std::string>& behind) {
  std::vector<std::string> normal;
  bool options_end = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (options_end) behind.push_back(word);
    options_end = options_end || word == "--";
    const std::string underscored = with_underscores(word);
    const bool value = !normal.empty() && takes_next(command, normal.back()) && !is_option(command, underscored);
    normal.push_back(options_end || value ? word : underscored);
    // "--wandb_tags a b": the words of a list, up to an option or a file.
    const auto is_list = [&](const Option& o) {
      return o.value == "LIST" && normal[normal.size() - 2] == "--" + o.name;
    };
    if (value && std::ranges::any_of(command.options, is_list)) {
      for (; i + 1 < words.size() && !words[i + 1].starts_with("-") && !is_there(words[i + 1]) &&
             words[i + 1].find(".y") == std::string::npos;
           ++i)
        normal.back() += "," + words[i + 1];
    }
    const Option* const option = options_end || value ? nullptr : may_stand_alone(command, underscored);
    if (!option) continue;
    // A word like its choices is meant as one, and is checked below.
    const std::string next = i + 1 < words.size() ? words[i + 1] : "";
    const bool chosen = !next.empty() && next.front() != '-' && !nearest(next, option->choices).empty();
    normal.back() += "=" + (chosen ? words[++i] : option->alone);
  }
  return normal;
}

}  // namespace

Args Args::parse(const Command& command, const std::vector<std::string>& words) {
  Args args;
  args.command_ = &command;
  std::vector<std::string> line = {command.name};
  line.insert(line.end(), words.begin(), words.end());
  args.line_ = shell_quoted(without_secrets(line));
  const std::vector<std::string> normal = normal_words(command, words, args.behind_);
  const po::options_description table = described(command);
  const auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  try {
    const auto parsed = po::command_line_parser(normal).options(table).style(style).run();
    for (const auto& option : parsed.options) {
      if (option.position_key >= 0 || option.string_key.empty()) {
        args.operands_.insert(args.operands_.end(), option.value.begin(), option.value.end());
        continue;
      }
      const Option& known = row(command, option.string_key);
      auto& values = args.values_[known.name];
      if (known.value.empty() || !known.many) values.clear();  // the last one typed holds
      for (const std::string& value : option.value) {
        const bool allowed = known.choices.empty() || std::ranges::find(known.choices, value) != known.choices.end();
        if (value.empty()) throw UsageError("--" + known.name + " is empty: is the variable set?");
        if (!allowed) {
          throw UsageError(fmt::format("--{}: '{}' is not one of {}{}", known.name, value,
                                       fmt::join(known.choices, ", "), did_you_mean(value, known.choices)));
        }
        values.push_back(value);
      }
      args.typed_.emplace_back(known.name, values.empty() ? "" : values.back());
    }
  } catch (const po::error& error) {
    explain(command, error);
  }
  if (std::ranges::find(args.operands_, "") != args.operands_.end())
    throw UsageError("an operand is empty: is the variable set?");
  if (command.operands.empty() && !args.operands_.empty())
    throw UsageError("unexpected operand '" + args.operands_.front() + "'");
  return args;
}

bool Args::has(const std::string& name) const {
  asked_.insert(name);
  return values_.contains(name);
}

std::vector<std::string> Args::unasked() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : typed_) {
    if (!asked_.contains(name) && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string Args::peek(const std::string& name) const {
  const auto found = values_.find(name);
  if (found != values_.end() && !found->second.empty()) return found->second.back();
  return has_option(*command_, name) ? row(*command_, name).fallback : "";
}

std::string Args::text(const std::string& name) const {
  asked_.insert(name);
  const auto found = values_.find(name);
  return found == values_.end() || found->second.empty() ? row(*command_, name).fallback : found->second.back();
}

std::vector<std::string> Args::all(const std::string& name) const {
  asked_.insert(name);
  const auto found = values_.find(row(*command_, name).name);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

std::int64_t Args::integer(const std::string& name, std::int64_t lowest, std::int64_t highest) const {
  const std::string value = text(name);
  const auto number = parse_int(value);
  if (number && *number >= lowest && *number <= highest) return *number;
  const std::string range =
      highest == INT64_MAX ? "of at least " + to_text(lowest) : "from " + to_text(lowest) + " to " + to_text(highest);
  throw UsageError("--" + name + ": '" + value + "' is not a whole number " + range);
}

double Args::real(const std::string& name, double lowest, double highest) const {
  const std::string value = text(name);
  const auto number = parse_real(value);
  if (number && *number >= lowest && *number <= highest) return *number;
  throw UsageError("--" + name + ": '" + value + "' is not a number from " + to_text(lowest) + " to " +
                   to_text(highest));
}

std::vector<std::string> Args::inputs() const {
  if (!operands_.empty()) return operands_;
  if (::isatty(STDIN_FILENO)) throw UsageError("no input: name a file, or pipe one in");
  return {"-"};
}

std::string Args::operand(const std::string& what) const {
  if (operands_.empty()) throw UsageError("expected " + what);
  if (operands_.size() > 1) throw UsageError("expected only " + what + ", also got '" + operands_[1] + "'");
  return operands_.front();
}

std::string Args::input() const {
  const auto names = inputs();
  if (names.size() > 1) throw UsageError("expected one input, also got '" + names[1] + "'");
  return names.front();
}

}  // namespace zs::cli
