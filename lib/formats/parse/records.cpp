// SPDX-License-Identifier: Apache-2.0
#include "parse/records.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/name.hpp"
#include "base/number.hpp"
#include "metric/unit.hpp"

namespace zs::parse {
namespace {

/// True and False of Python as 1 and 0; "" for anything else.
std::string_view truth(std::string_view word) {
  if (word == "True" || word == "true") return "1";
  if (word == "False" || word == "false") return "0";
  return {};
}

constexpr int kVague = 2;  // the priority of "time", which is a duration or a time stamp

/// Whether a value is a time of day, and not a duration: "2026-11-29T01:00:01", or seconds since 1970.
bool is_stamp(const Field& field) {
  constexpr double kEpoch = 1e8;  // as seconds, more than three years
  if (field.kind == Kind::word)
    return !field.value.empty() && is_digit(field.value.front()) &&
           field.value.find_first_of(":-") != std::string_view::npos && field.value.find('e') == std::string_view::npos;
  const auto value = parse_real(field.value);
  return value && *value > kEpoch && std::isfinite(*value);
}

}  // namespace

ColumnName Records::column_of(const Field& field) const {
  const auto mapped = map_.find(std::string(field.key));
  if (mapped != map_.end()) return {mapped->second, std::numeric_limits<int>::max()};
  const ColumnName name = column_named(field.key);
  if (name.column == "iteration_time" && name.priority <= kVague && is_stamp(field))
    return {"timestamp", name.priority};
  const bool fraction = name.column == "epoch" && field.kind == Kind::real;  // "epoch: 0.25" counts no epochs
  return fraction ? ColumnName{"epochs", name.priority} : name;
}

/// The column of that name, made for `field` if there is none.
std::size_t Records::column_at(const std::string& name, const Field& field) {
  const auto found = std::ranges::find(columns_, name, &ColumnInfo::name);
  if (found != columns_.end()) return static_cast<std::size_t>(found - columns_.begin());
  const bool word = field.kind == Kind::word && truth(field.value).empty();
  ColumnInfo column{name, word ? metric::Type::text : name == "part" ? metric::Type::integer : metric::Type::real};
  if (const metric::Standard* const standard = metric::standard(name))
    column = {name, standard->type, std::string(standard->unit)};
  columns_.push_back(std::move(column));
  return columns_.size() - 1;
}

/// The shape of fields_, of which those from `logged` on are not the log's and keep their names.
const Records::Shape& Records::shape_of(std::size_t logged) {
  const auto fits = [&](const Shape& shape) {
    return shape.field_of_column.size() == columns_.size() && shape.keys.size() == fields_.size() &&
           std::equal(fields_.begin(), fields_.end(), shape.keys.begin(),
                      [](const Field& f, const std::string& key) { return f.key == key; });
  };
  if (last_shape_ < shapes_.size() && fits(shapes_[last_shape_])) return shapes_[last_shape_];
  for (last_shape_ = 0; last_shape_ < shapes_.size(); ++last_shape_) {
    if (fits(shapes_[last_shape_])) return shapes_[last_shape_];
  }
  // The surest key of each column has it; the others keep their own names, if those are free.
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const ColumnName mine = column_of(fields_[i]);
    bool beaten = false;
    for (std::size_t k = 0; k < logged && i < logged; ++k) {
      const ColumnName other = column_of(fields_[k]);
      beaten = beaten || (other.column == mine.column &&
                          (other.priority > mine.priority || (other.priority == mine.priority && k < i)));
    }
    names.emplace_back(beaten || i >= logged ? fields_[i].key : mine.column);
  }
  Shape shape;
  std::vector<int> column_of_field(fields_.size(), -1);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    shape.keys.emplace_back(fields_[i].key);
    const auto before = names.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(names.begin(), before, names[i]) == before)
      column_of_field[i] = static_cast<int>(column_at(names[i], fields_[i]));
  }
  for (std::size_t i = 0; i < logged; ++i) {
    seen_.emplace(fields_[i].key);
    doubt_units(fields_[i]);
  }
  metric::set_loss_unit(columns_);
  shape.field_of_column.assign(columns_.size(), -1);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (column_of_field[i] >= 0)
      shape.field_of_column[static_cast<std::size_t>(column_of_field[i])] = static_cast<int>(i);
  }
  if (shapes_.size() >= 64) shapes_.clear();  // a log whose every line has other keys
  last_shape_ = shapes_.size();
  return shapes_.emplace_back(std::move(shape));
}

/// Reports a mapped key that names its unit, or an implausible value: more than a day for a step, less than a kilobyte
/// of memory.
void Records::doubt_units(const Field& field) {
  const auto mapped = map_.find(std::string(field.key));
  const metric::Standard* const standard = mapped == map_.end() ? nullptr : metric::standard(mapped->second);
  if (!standard || (standard->unit != "s" && standard->unit != "bytes")) return;
  const bool time = standard->unit == "s";
  const std::string_view said = unit_of_key(field.key);
  const auto value = parse_real(field.value);
  const bool odd = value && (time ? *value > 86400 : *value > 0 && *value < 1000);
  if (!(said.empty() ? odd : said != standard->unit)) return;
  const std::string doubt =
      "--map takes " + mapped->second + " from '" + std::string(field.key) + "', whose first value is " +
      std::string(field.value.substr(0, 40)) + ": " + mapped->second + " is in " + (time ? "seconds" : "bytes") +
      (said.empty() ? "" : ", and that key says " + std::string(said)) + "; zs-parse does not convert it";
  if (std::ranges::find(doubts_, doubt) == doubts_.end()) doubts_.push_back(doubt);
}

std::vector<std::string> Records::unseen(const std::vector<std::string>& mapped) const {
  std::vector<std::string> said;
  for (const std::string& key : mapped) {
    if (seen_.count(key) == 0)
      said.push_back("--map takes " + map_.at(key) + " from '" + key + "', which no line has" +
                     did_you_mean(key, {seen_.begin(), seen_.end()}));
  }
  return said;
}

/// The text of a cell; false if the value is not of the column's type.
bool Records::checked(const ColumnInfo& column, const Field& field, std::string_view& cell) {
  cell = field.value;
  if (column.type == metric::Type::text || field.value.empty()) return true;
  const bool number = field.kind != Kind::word;
  if (number && column.type == metric::Type::real) {
    const bool spelt = is_alpha(field.value.back());  // NaN, Infinity: as zs spells them
    if (spelt) cell = made_.emplace_back(to_text(*parse_real(field.value)));
    const std::size_t e = std::min(field.value.find_first_of("eE"), field.value.size());
    const bool usual = spelt || (e < 300 && field.value.size() - e < 4);  // too large or small for no double
    return usual || parse_real(field.value).has_value();
  }
  if (field.kind == Kind::integer) return field.value.size() <= 18 || parse_int(field.value).has_value();
  if (number) {
    const auto real = parse_real(field.value);
    if (!real || !(std::fabs(*real) <= 0x1p53) || *real != std::trunc(*real)) return false;
    cell = made_.emplace_back(to_text(static_cast<std::int64_t>(*real)));
    return true;
  }
  const bool nothing = field.value == "None" || field.value == "null";
  cell = truth(field.value);
  return nothing || !cell.empty();
}

std::vector<std::string> Records::add(const std::vector<Field>& fields, const Place& place) {
  fields_ = fields;
  const std::size_t logged = fields_.size();
  if (!place.rank.empty()) fields_.push_back({"rank", place.rank, Kind::integer});
  const std::string line = to_text(place.line), part = to_text(std::int64_t{place.part});
  fields_.push_back({"line", line, Kind::integer});
  if (place.part > 1) fields_.push_back({"part", part, Kind::integer});
  const Shape& shape = shape_of(logged);
  std::vector<std::string> faults;
  made_.clear();
  made_.reserve(columns_.size());  // views into it must stay
  cells_.assign(columns_.size(), {});
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    const int index = shape.field_of_column[column];
    if (index < 0) continue;
    const Field& field = fields_[static_cast<std::size_t>(index)];
    if (checked(columns_[column], field, cells_[column])) continue;
    cells_[column] = {};
    const std::string &name = columns_[column].name, text(field.value.substr(0, 40));
    const bool whole = columns_[column].type == metric::Type::integer;
    faults.push_back("malformed value: '" + text + "' " +
                     (!whole && field.kind == Kind::real
                          ? "of '" + name + "' is not 0, but nearer to it than any double"
                          : std::string("is not a ") + (whole ? "whole " : "") + "number, as '" + name + "' must be"));
  }
  rows_.row(columns_, cells_);
  return faults;
}

}  // namespace zs::parse
