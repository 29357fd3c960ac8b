// SPDX-License-Identifier: Apache-2.0
#include "base/sheet.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/number.hpp"
#include "base/text.hpp"

namespace zs {
namespace {

std::string for_people(const std::string& text) {
  constexpr std::size_t kLongNumber = 9, kLongText = 40;
  if (text.size() > kLongNumber && !parse_int(text)) {
    if (const auto number = parse_real(text); number && std::isfinite(*number)) return to_rounded_text(*number, 6);
  }
  const std::string line = printable(text);
  return characters(line) > kLongText ? std::string(first_characters(line, kLongText - 1)) + "…" : line;
}

nlohmann::ordered_json json_value(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  if (const auto number = parse_int(text)) return *number;
  if (const auto number = parse_real(text); number && std::isfinite(*number)) return *number;
  return text;
}

nlohmann::ordered_json json_object(const std::vector<std::string>& names, const std::vector<std::string>& values) {
  auto object = nlohmann::ordered_json::object();
  auto& members =
      static_cast<nlohmann::ordered_json::object_t::Container&>(object.get_ref<nlohmann::ordered_json::object_t&>());
  std::unordered_set<std::string_view> present;  // an ordered object looks through all its members for each new one
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!values[i].empty() && present.insert(names[i]).second) members.emplace_back(names[i], json_value(values[i]));
  }
  return object;
}

std::string dumped(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

template <typename Cell>
std::string lines(const Sheet& sheet, char separator, Cell cell) {
  std::string out;
  const auto add = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i) out += separator;
      out += cell(cells[i]);
    }
    out += '\n';
  };
  add(sheet.header);
  for (const auto& row : sheet.rows) add(row);
  return out;
}

}  // namespace

std::string csv_cell(const std::string& raw) {
  // A spreadsheet would compute what begins so; numbers are numbers.
  const bool formula =
      !raw.empty() && std::string_view("=+-@\t\r").find(raw[0]) != std::string_view::npos && !parse_real(raw);
  std::string text(formula ? "'" : "");
  for (std::string_view rest = raw; !rest.empty();) {  // lines and tabs are data, the rest would steer a terminal
    const std::string_view character = rest.substr(0, std::max<std::size_t>(utf8_size(rest), 1));
    text += character == "\n" || character == "\t" ? std::string(character) : printable(character);
    rest.remove_prefix(character.size());
  }
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string to_tsv(const Sheet& sheet) {
  return lines(sheet, '\t', [](const std::string& text) { return printable(backslashed(text)); });
}
std::string to_csv(const Sheet& sheet) { return lines(sheet, ',', csv_cell); }

nlohmann::ordered_json to_objects(const Sheet& sheet) {
  auto objects = nlohmann::ordered_json::array();
  for (const auto& row : sheet.rows) objects.push_back(json_object(sheet.header, row));
  return objects;
}

std::string to_json(const Sheet& sheet) {
  std::string out = "[";
  for (const auto& row : sheet.rows) out += (out.size() > 1 ? ",\n " : "\n ") + dumped(json_object(sheet.header, row));
  return out + "\n]\n";
}

std::string to_json(const std::vector<std::string>& names, const std::vector<std::string>& values) {
  return json_object(names, values).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Sheet fitted(const Sheet& sheet, std::size_t width, std::size_t& left_out) {
  Sheet out;
  out.rows.resize(sheet.rows.size());
  std::size_t used = 0;
  left_out = 0;
  for (std::size_t c = 0; c < sheet.header.size(); ++c) {
    std::vector<std::string> cells;
    std::size_t widest = characters(sheet.header[c]);
    for (const auto& row : sheet.rows) widest = std::max(widest, characters(cells.emplace_back(for_people(row[c]))));
    const std::size_t with = used + (c ? 2 : 0) + widest;
    if (width > 0 && c > 0 && with > width) {
      left_out = sheet.header.size() - c;
      break;
    }
    used = with;
    out.header.push_back(sheet.header[c]);
    for (std::size_t r = 0; r < cells.size(); ++r) out.rows[r].push_back(std::move(cells[r]));
  }
  return out;
}

std::string aligned(const Sheet& sheet, std::size_t width) {
  const auto& header = sheet.header;
  auto rows = sheet.rows;
  for (auto& row : rows) std::transform(row.begin(), row.end(), row.begin(), printable);
  std::vector<std::size_t> widths;
  std::vector<bool> numeric;
  for (std::size_t c = 0; c < header.size(); ++c) {
    std::size_t width = characters(header[c]);
    bool numbers = true, any = false;
    for (const auto& row : rows) {
      width = std::max(width, characters(row[c]));
      if (row[c].empty() || row[c] == "-") continue;
      any = true;
      numbers = numbers && parse_real(row[c].substr(0, row[c].find(' '))).has_value();
    }
    widths.push_back(width);
    numeric.push_back(numbers && any);
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells, std::size_t from, std::size_t to) {
    std::string out;
    for (std::size_t c = 0; c < to; c = c == 0 ? std::max<std::size_t>(from, 1) : c + 1) {
      const std::string pad(widths[c] - characters(cells[c]), ' ');
      out += (c ? "  " : "") + (numeric[c] ? pad + cells[c] : cells[c] + pad);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  };
  for (std::size_t from = 0, to = 0; from < header.size(); from = to) {
    std::size_t used = from > 0 ? widths[0] : 0;
    for (to = from; to < header.size(); ++to) {
      used += widths[to] + (to > 0 ? 2 : 0);
      if (width > 0 && used > width && to > std::max<std::size_t>(from, 1)) break;
    }
    if (from > 0) text += "\n";
    line(header, from, to);
    for (const auto& row : rows) line(row, from, to);
  }
  return text;
}

}  // namespace zs
