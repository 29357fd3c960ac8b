// SPDX-License-Identifier: Apache-2.0
#include "metric/file.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/file.hpp"
#include "h5/image.hpp"
#include "metric/hdf5.hpp"
#include "metric/tsv_reader.hpp"

namespace zs::metric {
namespace {

constexpr std::array<std::string_view, 5> kTextStarts = {"#zs-metrics ", "#@ ", "#: ", "run\t", "run\n"};

bool is_metric_text(std::string_view bytes) {
  return std::any_of(kTextStarts.begin(), kTextStarts.end(), [&](std::string_view s) { return bytes.starts_with(s); });
}

/// Puts the rows of `from` under those of `into`, column by column, by name.
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

/// Adds what one stretch of input held. `lines`: where its runs began, or empty.
void join(Store& into, Store&& from, const std::string& place, const std::vector<std::int64_t>& lines) {
  for (std::size_t r = 0; r < from.runs.size(); ++r) {
    Run& run = from.runs[r];
    if (std::any_of(into.runs.begin(), into.runs.end(), [&](const Run& other) { return other.name == run.name; })) {
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

/// Takes one image off the front of `bytes`.
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

Store parse(std::string_view bytes, const std::string& name) {
  if (bytes.empty()) throw Error(name, 0, "is empty, expected metric records (zs-parse makes them from a log)");
  Store store;
  std::int64_t line = 1;
  while (!bytes.empty()) {
    if (bytes.starts_with(h5::kSignature)) {
      join(store, take_image(bytes, name), name, {});
      continue;
    }
    if (!is_metric_text(bytes)) {
      throw Error(
          name, line > 1 ? line : 0,
          "no metric records: expected '#zs-metrics 1' or HDF5 data (a training log goes through zs-parse first)");
    }
    const std::string_view text = bytes.substr(0, bytes.find(h5::kSignature));
    bytes.remove_prefix(text.size());
    TsvReader reader(name, line);
    Store part;
    part.runs = reader.read(text);
    join(store, std::move(part), name, reader.lines());
    line += std::count(text.begin(), text.end(), '\n');
  }
  return store;
}

Store read(const std::string& path) {
  Input input(path);
  return parse(input.read_all(), input.name());
}

Store read(const std::vector<std::string>& paths) {
  Store all;
  for (const std::string& path : paths) {
    Input input(path);
    join(all, parse(input.read_all(), input.name()), input.name(), {});
  }
  return all;
}

}  // namespace zs::metric
