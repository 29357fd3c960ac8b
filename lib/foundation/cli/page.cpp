// SPDX-License-Identifier: Apache-2.0
// Prints a command's table as --help, man page and completion.
#include <algorithm>
#include <sstream>

#include "base/words.hpp"
#include "cli/command.hpp"

#include <fmt/ranges.h>

namespace zs::cli {
namespace {

constexpr std::size_t kWidth = 80;

std::map<int, std::string> statuses(const Command& command) {
  std::map<int, std::string> statuses = command.statuses;
  statuses.insert({{0, "done"}, {2, "could not: usage, input, output or device"}});  // keeps what is there
  return statuses;
}

std::string with_default(const Option& option) {
  std::string text = option.help;
  if (!option.choices.empty()) text += "; one of " + joined(option.choices);
  if (!option.fallback.empty()) text += " [" + option.fallback + "]";
  return text;
}

/// Words of `text` in lines of `width`, later lines indented by `indent`.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::istringstream words(text);
  std::string word, result;
  std::size_t used = indent;
  while (words >> word) {
    if (used > indent && used + 1 + word.size() > width) {
      result += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (used > indent) {
      result += ' ';
      ++used;
    }
    result += word;
    used += word.size();
  }
  return result;
}

/// Words that mdoc would take for a macro at the start of a line, or escape: made literal.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
  }
  if (escaped.starts_with(".") || escaped.starts_with("'")) escaped.insert(0, "\\&");
  return escaped;
}

/// The options of a command, and those that every tool has.
std::vector<Option> all_options(const Command& command) {
  std::vector<Option> options = command.options;
  const std::string group = options.empty() || options.back().group.empty() ? "" : "General";
  options.push_back({.letter = 'h', .name = "help", .value = "", .help = "print this help", .group = group});
  options.push_back({.name = "version", .value = "", .help = "print the version", .group = group});
  return options;
}

/// The prose of a page in the parts that stand at different places of the page. What a newcomer needs comes first:
/// examples, verdicts, exit status. Then the options, and details: subsections of the prose in front of its first
/// section.
struct Prose {
  std::string date, description, examples, verdicts, options, details, sections, surroundings, references;
  std::string elsewhere;  ///< groups of options that another page has
};

Prose prose_of(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  Prose prose;
  std::getline(lines, prose.date);
  if (!prose.date.starts_with(".Dd "))
    throw Error("the first line of the prose must be its date: .Dd November 20, 2026");
  std::string* part = &prose.description;
  while (std::getline(lines, line)) {
    if (line.starts_with(".\\\" elsewhere ")) prose.elsewhere = line + " ";
    if (line.starts_with(".Ss ") && (part == &prose.description || part == &prose.options)) part = &prose.details;
    if (line.starts_with(".Sh ")) {
      part = line == ".Sh EXAMPLES"                             ? &prose.examples
             : line == ".Sh VERDICTS"                           ? &prose.verdicts
             : line == ".Sh OPTIONS"                            ? &prose.options
             : line == ".Sh SEE ALSO"                           ? &prose.references
             : line == ".Sh ENVIRONMENT" || line == ".Sh FILES" ? &prose.surroundings
                                                                : &prose.sections;
    }
    if (line != ".Sh EXAMPLES" && line != ".Sh OPTIONS") *part += line + "\n";
  }
  return prose;
}

/// The lists of options by group, without the groups in `elsewhere`.
void list_options(const Command& command, const std::string& elsewhere, std::ostream& out) {
  std::string group;
  bool open = false;
  for (const Option& option : all_options(command)) {
    if (elsewhere.find(" " + option.group + " ") != std::string::npos) continue;
    if (!open || option.group != group) {
      if (open) out << ".El\n";
      group = option.group;
      if (!group.empty()) out << ".Ss " << roff(group) << "\n";
      out << ".Bl -tag -width Ds\n";
      open = true;
    }
    out << ".It ";
    if (option.letter) out << "Fl " << option.letter << " , ";
    out << "Fl \\-" << option.name;
    if (!option.value.empty()) out << " Ar " << roff(option.value) << (option.many ? " ..." : "");
    out << "\n" << roff(with_default(option)) << "\n";
  }
  out << ".El\n";
}

}  // namespace

std::string help_text(const Command& command, bool whole) {
  std::ostringstream out;
  out << "Usage: " << command.name << " [OPTION]..." << (command.operands.empty() ? "" : " " + command.operands) << "\n"
      << command.purpose << ".\n\n";
  const std::vector<Option> options = all_options(command);
  constexpr std::size_t kColumn = 30;
  std::string group;
  std::size_t hidden = 0;
  for (const Option& option : options) {
    const bool common = option.group == "General" && option.name != "help" && option.name != "version";
    if (!whole && !command.brief.empty() && !command.brief.contains(option.group) &&
        (option.group != "General" || common)) {
      ++hidden;
      continue;
    }
    if (option.group != group) {
      if (&option != &options.front()) out << "\n";
      out << (group = option.group) << ":\n";
    }
    std::string left = option.letter ? std::string("  -") + option.letter + ", " : "      ";
    left += "--" + option.name + (option.value.empty() ? "" : " " + option.value) + (option.many ? "..." : "");
    if (left.size() + 2 > kColumn)
      left += "\n" + std::string(kColumn, ' ');
    else
      left.resize(kColumn, ' ');
    out << left << wrapped(with_default(option), kColumn, kWidth) << "\n";
  }
  out << "\nExit status:\n";
  for (const auto& [status, meaning] : statuses(command))
    out << "  " << status << "  " << wrapped(meaning, 5, kWidth) << "\n";
  if (!command.examples.empty()) out << "\nExamples:\n";
  for (const std::string& example : command.examples) out << "  " << example << "\n";
  out << "\nMore: man " << command.name;
  if (hidden > 0) out << "; " << command.name << " --help all shows " << hidden << " more options";
  out << "\n";
  return out.str();
}

std::string man_page(const Command& command, const std::string& text) {
  const Prose prose = prose_of(text);
  std::ostringstream out;
  std::string title = command.name;
  std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
  out << ".\\\" Made from the option table and man/" << command.name << ".prose by make man. Edit those.\n"
      << prose.date << "\n.Dt " << title << " 1\n.Os\n.Sh NAME\n.Nm " << command.name << "\n.Nd ";
  std::string purpose = command.purpose;
  purpose[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(purpose[0])));
  out << roff(purpose) << "\n.Sh SYNOPSIS\n.Nm\n.Op Ar OPTION ...\n";
  if (!command.operands.empty()) out << ".Ar " << roff(command.operands) << "\n";
  out << ".Sh DESCRIPTION\n" << prose.description;
  if (!prose.examples.empty() || !command.examples.empty()) out << ".Sh EXAMPLES\n" << prose.examples;
  if (!command.examples.empty()) {
    out << ".Pp\nIn short:\n.Bd -literal -offset indent\n";
    for (const std::string& example : command.examples) out << "$ " << roff(example) << "\n";
    out << ".Ed\n";
  }
  out << prose.verdicts << ".Sh EXIT STATUS\n.Bl -tag -width Ds\n";
  for (const auto& [status, meaning] : statuses(command)) out << ".It " << status << "\n" << roff(meaning) << "\n";
  out << ".El\n.Sh OPTIONS\n";
  list_options(command, prose.elsewhere, out);
  out << ".Pp\nIn option names\n.Sq _\nand\n.Sq \\-\nare alike.\n" << prose.options;
  if (!prose.details.empty()) out << ".Sh DETAILS\n" << prose.details;
  out << prose.sections << prose.surroundings << prose.references;
  return out.str();
}

std::string completion(const Command& command) {
  std::string words, cases;
  for (const Option& option : all_options(command)) {
    words += (words.empty() ? "--" : " --") + option.name;
    if (option.choices.empty()) continue;
    cases += fmt::format("    --{}) COMPREPLY=($(compgen -W '{}' -- \"$cur\")); return ;;\n", option.name,
                         fmt::join(option.choices, " "));
  }
  std::string function = "_" + command.name;
  std::replace(function.begin(), function.end(), '-', '_');
  return function + "() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n" +
         (cases.empty() ? "" : "  case $prev in\n" + cases + "  esac\n") +
         "  case $cur in\n    -*) COMPREPLY=($(compgen -W '" + words + "' -- \"$cur\")) ;;\n  esac\n}\n" +
         "complete -o default -F " + function + " " + command.name + "\n";
}

}  // namespace zs::cli
