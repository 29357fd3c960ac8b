// SPDX-License-Identifier: Apache-2.0
#include "metric/file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/sheet.hpp"
#include "h5/image.hpp"
#include "metric/hdf5.hpp"
#include "metric/summary_text.hpp"
#include "metric/tsv_reader.hpp"

namespace zs::metric {
namespace {

constexpr std::array<std::string_view, 5> kTextStarts = {"#zs-metrics ", "#@ ", "#: ", "run\t", "run\n"};

bool is_metric_text(std::string_view bytes) {
  return std::ranges::any_of(kTextStarts, [&](std::string_view s) { return bytes.starts_with(s); });
}

/// Removes the byte order mark that some editors add.
std::string_view without_mark(std::string_view bytes) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return bytes.starts_with(kMark) ? bytes.substr(kMark.size()) : bytes;
}

[[noreturn]] void refuse(const std::string& name, std::int64_t line) {
  throw Error(name, line,
              "no metric records: expected '#zs-metrics 1' or HDF5 data (a training log goes through zs-parse first)");
}

/// The end of the text at the start of `bytes`: the start of HDF5 data, of a summary, or of records after one.
std::size_t text_end(std::string_view bytes) {
  const std::size_t image = std::min(bytes.find(h5::kSignature), bytes.size());
  const bool summary = is_summary_text(bytes);
  for (std::size_t at = bytes.find("\n#zs-metrics "); at < image; at = bytes.find("\n#zs-metrics ", at + 1)) {
    if (summary || is_summary_text(bytes.substr(at + 1))) return at + 1;
  }
  return image;
}

/// Appends the rows of `from` to the rows of `into`, column by column, by name.
void append(Table& into, const Table& from, const std::string& what) {
  const std::size_t before = into.rows();
  for (const Column& column : from.columns) {
    Column* target = into.find(column.name);
    if (!target) {
      target = &into.columns.emplace_back(column.name, column.unit, column.type());
      target->pad(before);
    }
    for (std::size_t row = 0; row < column.size(); ++row) {
      if (!target->append(column.text(row))) throw Error(what + ": column '" + column.name + "' has two types");
    }
  }
  into.even_out();
}

void join_summary(Store& into, const Table& summary, const std::string& place) {
  if (!into.summary) into.summary.emplace();
  const Column* const old = into.summary->find("condition");
  const Column* const fresh = summary.find("condition");
  for (std::size_t row = 0; old && fresh && row < fresh->size(); ++row) {
    const std::string name = fresh->text(row);
    for (std::size_t other = 0; other < old->size(); ++other) {
      if (old->text(other) == name) throw Error(place, 0, "a second condition named '" + name + "'");
    }
  }
  append(*into.summary, summary, place);
}

/// Adds a part of the input. `lines`: the first line of each run, or empty.
void join(Store& into, Store&& from, const std::string& place, const std::vector<std::int64_t>& lines) {
  for (std::size_t r = 0; r < from.runs.size(); ++r) {
    Run& run = from.runs[r];
    if (std::ranges::any_of(into.runs, [&](const Run& other) { return other.name == run.name; })) {
      throw Error(place, lines.empty() ? 0 : lines[r],
                  "a second run named '" + run.name + "': give one another name with zs-parse --run NAME");
    }
    into.runs.push_back(std::move(run));
  }
  if (from.summary) join_summary(into, *from.summary, place);
  into.curves.merge(from.curves);
  for (const auto& [name, table] : from.tables) append(into.tables[name], table, place + ": table '" + name + "'");
  into.attributes.merge(from.attributes);
}

Store take_image(std::string_view& bytes, const std::string& name) {
  try {
    const std::uint64_t size = h5::image_size(bytes);
    if (size > bytes.size()) {
      throw Error("truncated HDF5 data: " + std::to_string(bytes.size()) + " of " + std::to_string(size) + " bytes");
    }
    const std::string_view image = bytes.substr(0, size);
    bytes.remove_prefix(size);
    return from_h5(image);
  } catch (const Error& error) {
    throw Error(name, 0, error.what());
  }
}

}  // namespace

bool is_metrics(std::string_view bytes) {
  bytes = without_mark(bytes);
  return bytes.starts_with(h5::kSignature) || is_metric_text(bytes);
}

void join(Store& into, Store&& from, const std::string& place) { join(into, std::move(from), place, {}); }

Store parse(std::string_view bytes, const std::string& name) {
  if (bytes.empty()) throw Error(name, 0, "is empty, expected metric records (zs-parse makes them from a log)");
  bytes = without_mark(bytes);
  Store store;
  std::int64_t line = 1;
  while (!bytes.empty()) {
    if (bytes.starts_with(h5::kSignature)) {
      join(store, take_image(bytes, name), name, {});
      continue;
    }
    if (!is_metric_text(bytes)) refuse(name, line > 1 ? line : 0);
    const std::string_view text = bytes.substr(0, text_end(bytes));
    bytes.remove_prefix(text.size());
    if (is_summary_text(text)) {
      join(store, read_summary_text(text, name, line), name, {});
    } else {
      TsvReader reader(name, line);
      Store part;
      part.runs = reader.read(text);
      join(store, std::move(part), name, reader.lines());
    }
    line += std::ranges::count(text, '\n');
  }
  return store;
}

namespace {

/// The bytes of an input, if they begin as metrics do: another file is not read to its end.
std::string content(Input& input) {
  const std::string start = read_start(input, 64);
  if (!start.empty() && !is_metrics(start)) refuse(input.name(), 0);
  return start + input.read_all();
}

}  // namespace

std::string file_in(const std::string& folder) {
  const std::string path = folder + "/metrics.h5";
  const bool found = is_folder(folder) && is_file(path);
  return found ? path : "";
}

Store read(const std::string& path) {
  const std::string file = file_in(path);
  Input input(file.empty() ? path : file);
  return parse(content(input), input.name());
}

namespace {

/// JSON text; bytes that are not UTF-8 become U+FFFD.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string value(const Column& column, std::size_t row) {
  const std::string text = column.text(row);
  const bool number =
      column.type() == Type::integer || (column.type() == Type::real && std::isfinite(column.reals()[row]));
  return number ? text : quoted(text);
}

}  // namespace

std::string to_jsonl(const std::vector<Run>& runs) {
  std::string text;
  for (const Run& run : runs) {
    const std::string start = "{\"run\":" + quoted(run.name);
    for (std::size_t row = 0; row < run.records.rows(); ++row) {
      text += start;
      for (const Column& column : run.records.columns) {
        if (!column.absent(row)) text += "," + quoted(column.name) + ":" + value(column, row);
      }
      text += "}\n";
    }
  }
  return text;
}

std::string to_csv(const std::vector<Run>& runs) {
  Sheet sheet{{"run"}, {}};
  for (const Run& run : runs) {
    for (const Column& column : run.records.columns) {
      if (std::ranges::find(sheet.header, column.name) == sheet.header.end()) sheet.header.push_back(column.name);
    }
  }
  for (const Run& run : runs) {
    std::vector<const Column*> columns;
    for (std::size_t i = 1; i < sheet.header.size(); ++i) columns.push_back(run.records.find(sheet.header[i]));
    for (std::size_t row = 0; row < run.records.rows(); ++row) {
      auto& cells = sheet.rows.emplace_back(1, run.name);
      for (const Column* const column : columns) cells.push_back(column ? column->text(row) : "");
    }
  }
  return zs::to_csv(sheet);
}

}  // namespace zs::metric
