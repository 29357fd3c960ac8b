// SPDX-License-Identifier: Apache-2.0
#include "registry/import.hpp"

#include <fmt/chrono.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <vector>

#include "attribute/table.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/secret.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "config/known.hpp"
#include "parse/dialect.hpp"
#include "registry/run.hpp"
#include "registry/runs.hpp"

namespace zs::registry {
namespace {

/// The rows of a CSV (RFC 4180), or of a table with tabs in its header, in which quotes have no meaning.
class Rows {
 public:
  explicit Rows(std::string text) : text_(std::move(text)) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    const std::string_view header = std::string_view(text_).substr(0, text_.find('\n'));
    tabs_ = header.find('\t') < header.find(',');
  }

  /// The next row that is not an empty line; false at the end. Throws Error, located, at a quote that is not closed.
  bool next(std::vector<std::string>& cells, const std::string& path) {
    for (; at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r'); ++at_) line_ += text_[at_] == '\n';
    if (at_ >= text_.size()) return false;
    begun_ = line_;
    cells.clear();
    for (std::size_t end = at_; cells.empty(); ++line_) {
      if (end > text_.size())
        throw Error(
            path, begun_,
            begun_ == 1 ? "a quote is not closed: is it a table of runs?" : "a quote is not closed: is the file cut?");
      const std::string_view text = text_, added = text.substr(end, text.find('\n', end) - end);
      const bool goes_on = end > at_ && added.find('"') == added.npos;  // within quotes
      end += added.size() + 1;
      if (goes_on) continue;
      std::string_view row = text.substr(at_, end - 1 - at_);
      if (row.ends_with('\r')) row.remove_suffix(1);
      if (tabs_) {
        cells = split(row, "\t");
      } else {
        std::deque<std::string> made;
        const auto found = parse::cells_of(row, ',', made);
        cells.assign(found.begin(), found.end());
      }
      if (!cells.empty()) at_ = end;
    }
    return true;
  }
  /// The line on which the last row began, from 1.
  long line() const { return begun_; }

 private:
  std::string text_;
  std::size_t at_ = 0;
  bool tabs_ = false;
  long line_ = 1, begun_ = 1;
};

/// Whether a field holds whole numbers.
bool is_whole(const std::string& key) {
  const config::Known* const known = config::known(key);
  if (known) return known->type == config::Type::integer || known->type == config::Type::count;
  const attribute::Attribute* const row = attribute::find(key);
  return row && row->type == attribute::Type::integer;
}

/// A cell as a record has it.
std::string value_of(const std::string& key, const std::string& cell) {
  if (cell == "None") return "";
  if (withheld(key, cell) != cell) return withheld(key, cell);
  if (cell == "True" || cell == "False") return cell == "True" ? "true" : "false";
  if (is_whole(key) && cell.ends_with(".0") && parse_int(cell.substr(0, cell.size() - 2)))
    return cell.substr(0, cell.size() - 2);
  return cell;
}

/// The names of columns. Throws Error unless they name runs.
std::vector<std::string> read_header(Rows& rows, const std::string& name) {
  std::vector<std::string> header;
  if (!rows.next(header, name)) throw Error(name, 0, "is empty: a table of runs begins with the names of its columns");
  std::set<std::string> seen;
  for (const std::string& column : header) {
    if (!column.empty() && !seen.insert(column).second) throw Error(name, 1, "column '" + column + "' is there twice");
  }
  if (!seen.contains("run_id") && !seen.contains("run_name") && !seen.contains("condition"))
    throw Error(name, 1, "has none of the columns run_id, run_name and condition: is it a table of runs?");
  return header;
}

/// The ids that a registry has, its own and imported ones.
std::set<std::string> known_ids(const std::string& registry, const FaultSink& faults) {
  std::set<std::string> known;
  if (!std::filesystem::exists(registry)) return known;
  const Runs runs = read_runs(registry, faults);
  for (std::size_t row = 0; row < runs.size(); ++row) {
    for (const char* const column : {"run_id", "imported_id"}) {
      if (const std::string id = runs.text(row, column); !id.empty()) known.insert(id);
    }
  }
  return known;
}

}  // namespace

Imported import_text(const std::string& registry, const std::string& csv, std::string text, const FaultSink& faults) {
  const std::string name = csv == "-" ? "stdin" : csv;
  const std::string from = csv == "-" ? name : std::filesystem::absolute(csv).lexically_normal().string();
  Rows rows(std::move(text));
  const std::vector<std::string> header = read_header(rows, name);
  const bool has_names = std::ranges::find(header, "run_name") != header.end();
  const std::string named = has_names ? "run_name" : "condition";  // as zs-aggregate calls it
  std::set<std::string> known = known_ids(registry, faults);
  std::vector<std::string> cells;
  Imported imported;
  while (rows.next(cells, name)) {
    if (cells.size() != header.size()) {
      faults({name, rows.line(),
              "has " + std::to_string(cells.size()) + " cells, the header " + std::to_string(header.size()) +
                  ": left out"});
      continue;
    }
    Fields fields = {{"imported_from", from}};
    std::string id, run_name;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (header[i].empty()) continue;  // the index of a data frame
      const std::string value = value_of(header[i], cells[i]);
      if (header[i] == "run_id")
        id = value;
      else if (header[i] == named)
        run_name = printable(value);
      else if (const std::string key = printable(header[i]);
               !value.empty() && key == header[i] && !key.starts_with("imported_"))
        fields.emplace_back(key, value);  // no other column has this name
      else if (!value.empty())
        set(fields, key, value);
    }
    // A run of a log is as old as the log, not as its import.
    struct stat log {};
    const std::string source = value(fields, "source");
    if (!source.empty() && value(fields, "timestamp").empty() && ::stat(source.c_str(), &log) == 0)
      set(fields, "timestamp", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(log.st_mtime)));
    if (id.empty()) id = run_name + "@" + from + ":" + to_text(static_cast<std::int64_t>(rows.line()));
    if (!known.insert(id).second) {
      ++imported.known;
      continue;
    }
    set(fields, "imported_id", id);
    Run::create(registry, run_name.empty() ? id : run_name, fields);
    ++imported.made;
  }
  return imported;
}

}  // namespace zs::registry
