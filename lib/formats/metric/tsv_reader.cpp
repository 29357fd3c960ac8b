// SPDX-License-Identifier: Apache-2.0
#include "metric/tsv_reader.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/number.hpp"
#include "metric/escape.hpp"

namespace zs::metric {
namespace {

constexpr std::string_view kMagic = "#zs-metrics ";

/// Cuts `text` at the first `mark` and gives what stood before it.
std::string_view take(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
}

/// The position of the '=' after the key: the first without a backslash before it.
std::size_t equals_sign(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '=')
      return i;
  }
  return std::string_view::npos;
}

std::string shortened(std::string_view text) {
  return std::string(text.substr(0, 40)) + (text.size() > 40 ? "..." : "");
}

}  // namespace

void TsvReader::fail(const std::string& what) const { throw Error(name_, line_, what); }

std::string TsvReader::plain(std::string_view field) const {
  if (field.find('\\') == std::string_view::npos) return std::string(field);
  auto text = unescaped(field);
  if (!text) fail("unknown escape in '" + shortened(field) + "'");
  return std::move(*text);
}

TsvReader::Building& TsvReader::building(const std::string& run) {
  if (run.empty()) fail("a run without a name");
  const auto [place, made] = places_.try_emplace(run, runs_.size());
  if (made) {
    runs_.push_back({{run, {}, {}}, stream_, 0, {}, -1, {}});
    lines_.push_back(line_);
  } else if (runs_[place->second].stream != stream_) {
    fail("a second run named '" + run + "': give one another name with zs-parse --run NAME");
  }
  return runs_[place->second];
}

void TsvReader::attribute(std::string_view text) {
  const std::string run = plain(take(text, ' '));
  Building& target = building(run);
  if (text.empty()) return;  // "#@ RUN": the run is there, and nothing is known of it
  const std::size_t at = equals_sign(text);
  if (at == std::string_view::npos || at == 0) fail("expected '#@ RUN KEY=VALUE'");
  target.run.attributes[plain(text.substr(0, at))] = plain(text.substr(at + 1));
}

void TsvReader::declaration(std::string_view text) {
  const std::string column = plain(take(text, ' '));
  const std::string_view type = take(text, ' ');
  const auto known = type_named(type);
  if (column.empty() || !known) fail("expected '#: COLUMN int|real|text [UNIT]'");
  declared_[column] = {column, plain(text), known};
}

void TsvReader::comment(std::string_view line) {
  if (line.starts_with(kMagic)) {
    std::string_view rest = line.substr(kMagic.size());
    const std::string_view version = take(rest, ' ');
    if (version != "1") fail("metric format '" + shortened(version) + "' is not known here, only 1: update zs");
    if (!rest.empty() && rest != "continued") fail("expected '#zs-metrics 1' or '#zs-metrics 1 continued'");
    const bool later = begun_ || has_header_;  // false if a sort put other lines before this one
    begun_ = true;
    if (!later) return;
    refuse_early_rows();
    if (rest.empty()) ++stream_;
    has_header_ = false;
    declared_.clear();
  } else if (line.starts_with("#@ ")) {
    attribute(line.substr(3));
  } else if (line.starts_with("#: ")) {
    declaration(line.substr(3));
  }
}

/// A run may be named "run" too: a header is recognised by its second field, which is a name; a row has a number there.
bool TsvReader::is_header(std::string_view line) const {
  if (take(line, '\t') != "run") return false;
  const std::string_view second = take(line, '\t');
  if (has_header_) return !header_.empty() && second == header_.front().name;
  return !parse_real(second);
}

void TsvReader::refuse_early_rows() {
  if (early_.empty()) return;
  line_ = early_.front().first;
  fail("a row without a header line ('run', then the columns)");
}

void TsvReader::header(std::string_view line) {
  take(line, '\t');
  std::vector<HeaderColumn> columns;
  while (!line.empty()) {
    const std::string column = plain(take(line, '\t'));
    if (column.empty() || column == "run") fail("a column cannot be named '" + column + "'");
    if (std::ranges::any_of(columns, [&](const HeaderColumn& c) { return c.name == column; })) {
      fail("column '" + column + "' stands twice in the header");
    }
    const auto found = declared_.find(column);
    const Standard* const usual = standard(column);
    if (found != declared_.end())
      columns.push_back(found->second);
    else if (usual)
      columns.push_back({column, std::string(usual->unit), usual->type});
    else
      columns.push_back({column, "", {}});
  }
  header_ = std::move(columns);
  has_header_ = true;
  ++section_;
  const std::int64_t here = line_;
  for (const auto& [at, row_line] : std::exchange(early_, {})) {
    line_ = at;
    row(row_line);
  }
  line_ = here;
}

void TsvReader::place(Building& target) {
  target.section = section_;
  target.places.clear();
  auto& columns = target.run.records.columns;
  for (const HeaderColumn& wanted : header_) {
    const auto found = std::ranges::find(columns, wanted.name, &Column::name);
    const auto at = static_cast<std::size_t>(found - columns.begin());
    if (found == columns.end()) {
      columns.emplace_back(wanted.name, wanted.unit, wanted.type.value_or(Type::text));
      target.untyped.push_back(!wanted.type);
    } else if (wanted.type && !target.untyped[at] && *wanted.type != found->type()) {
      fail("column '" + wanted.name + "' of run '" + target.run.name + "' was " +
           std::string(metric::name(found->type())) + " and is now " + std::string(metric::name(*wanted.type)));
    }
    columns[at].pad(target.rows);
    target.places.push_back(at);
  }
}

void TsvReader::row(std::string_view line) {
  if (!has_header_) return void(early_.emplace_back(line_, line));  // sorted text: the header comes later
  const auto fields = static_cast<std::size_t>(std::ranges::count(line, '\t'));
  if (cut_off_ || fields != header_.size()) {
    const std::string counts = std::to_string(fields + 1) + " of " + std::to_string(header_.size() + 1) + " fields";
    if (cut_off_) fail("the input is cut off here (" + counts + " and no newline): was its writer stopped?");
    fail("expected " + std::to_string(header_.size() + 1) + " fields as in the header, found " +
         std::to_string(fields + 1));
  }
  const std::string_view field = take(line, '\t');
  if (field != last_field_ || last_field_.empty() || runs_[last_run_].stream != stream_) {
    Building& found = building(plain(field));
    last_run_ = static_cast<std::size_t>(&found - runs_.data());
    last_field_ = field;
  }
  Building& target = runs_[last_run_];
  if (target.section != section_) place(target);
  for (const std::size_t at : target.places) {
    const std::string_view cell = take(line, '\t');
    Column& column = target.run.records.columns[at];
    const bool text = column.type() == Type::text;
    if (!column.append(text && cell.find('\\') != std::string_view::npos ? plain(cell) : cell)) {
      fail("column '" + column.name + "' is " + std::string(metric::name(column.type())) + ", found '" +
           shortened(cell) + "'");
    }
  }
  ++target.rows;
}

void TsvReader::line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) return;
  if (line.find('\0') != std::string_view::npos) fail("a NUL byte: this is not text");
  const bool comments = line.front() == '#';
  if (!comments && !is_header(line)) return row(line);
  if (cut_off_) fail("the input is cut off here (no newline): was its writer stopped?");
  if (comments)
    comment(line);
  else
    header(line);
}

std::vector<Run> TsvReader::read(std::string_view text) {
  while (!text.empty()) {
    ++line_;
    cut_off_ = text.find('\n') == std::string_view::npos;
    line(take(text, '\n'));
  }
  refuse_early_rows();
  std::vector<Run> runs;
  for (Building& done : runs_) {
    auto& columns = done.run.records.columns;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      columns[c].pad(done.rows);
      if (done.untyped[c]) columns[c] = inferred(std::move(columns[c]));
    }
    done.run.records = canonical(std::move(done.run.records));
    runs.push_back(std::move(done.run));
  }
  return runs;
}

}  // namespace zs::metric
