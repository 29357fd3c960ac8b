// SPDX-License-Identifier: Apache-2.0
#include "cli/form.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/words.hpp"

namespace zs::cli {
namespace {

struct Ending {
  std::string_view ending, form;
};
/// A form's first ending is the one that messages name.
constexpr auto kEndings = std::to_array<Ending>({
    {".md", "md"},
    {".markdown", "md"},
    {".html", "html"},
    {".htm", "html"},
    {".pdf", "pdf"},
    {".png", "png"},
    {".svg", "svg"},
    {".csv", "csv"},
    {".tsv", "tsv"},
    {".json", "json"},
    {".jsonl", "jsonl"},
    {".h5", "h5"},
    {".hdf5", "h5"},
    {".txt", "table"},
    {".txt", "text"},
    {".prom", "openmetrics"},
});

const Option* row_of(const Args& args, std::string_view name) {
  const auto& rows = args.command().options;
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Option& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

bool typed(const Args& args, std::string_view name) {
  return std::any_of(args.typed().begin(), args.typed().end(), [&](const auto& one) { return one.first == name; });
}

/// The last ending of a file's name in lower case, with its dot; "" if it has none. A number is none: results.2026.
std::string ending_of(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return "";
  const std::string ending = lower(name.substr(dot));
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  return std::any_of(ending.begin(), ending.end(), letter) ? ending : "";
}

/// "" if the name decides nothing.
std::string decided(const Args& args) {
  const Option *const output = row_of(args, "output"), *const format = row_of(args, "format");
  if (!output || output->value != "FILE" || (!format && output->forms.empty())) return "";
  const std::vector<std::string>& taken = output->forms.empty() ? format->choices : output->forms;
  const std::string path = args.peek("output"), ending = ending_of(path);
  const std::string chosen = output->forms.empty() && typed(args, "format") ? args.peek("format") : "";
  if (path.empty() || ending.empty()) return chosen;
  std::string meant;
  bool known = false;
  for (const Ending& row : kEndings) {
    if (row.ending != ending) continue;
    known = true;
    if (meant.empty() && std::find(taken.begin(), taken.end(), row.form) != taken.end()) meant = row.form;
    if (row.form == chosen) meant = chosen;
  }
  if (!chosen.empty() && (meant == chosen || !known)) return chosen;
  if (!chosen.empty())
    throw UsageError("--format " + chosen + " does not suit the name '" + path + "': leave out one of them");
  if (!meant.empty()) return meant;
  std::vector<std::string> endings;
  for (const std::string& form : taken) {
    for (const Ending& row : kEndings) {
      const std::string one(row.ending);
      if (row.form != form || std::find(endings.begin(), endings.end(), one) != endings.end()) continue;
      endings.push_back(one);
      break;
    }
  }
  // Forms of tables that a library of Python alone writes.
  const bool table = std::find(endings.begin(), endings.end(), ".csv") != endings.end();
  const std::string writer = ending == ".parquet"   ? "to_parquet"
                             : ending == ".feather" ? "to_feather"
                             : ending == ".xlsx"    ? "to_excel"
                                                    : "";
  const std::string stem = path.substr(0, path.size() - ending.size());
  throw UsageError("cannot write '" + path + "': " + args.command().name + " writes " + joined(endings, ", ") +
                   (table && !writer.empty()
                        ? "; write " + stem + ".csv, then: python3 -c \"import pandas; pandas.read_csv('" + stem +
                              ".csv')." + writer + "('" + path + "')\""
                    : output->forms.empty() ? "; any other name needs --format"
                                            : ""));
}

}  // namespace

std::string form_of(const Args& args, const std::string& otherwise) {
  for (const char* const name : {"output", "format"}) args.mark_asked(name);
  const std::string form = decided(args);
  return form.empty() ? otherwise : form;
}

void require_form(const Args& args) { decided(args); }

}  // namespace zs::cli
