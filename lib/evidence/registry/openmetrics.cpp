// SPDX-License-Identifier: Apache-2.0
#include "registry/openmetrics.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "attribute/table.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "registry/listing.hpp"

namespace zs::registry {
namespace {

/// A name of letters, digits and '_', as a metric may have; no other column's.
std::string metric_name(const std::string& column, std::set<std::string>& taken) {
  std::string name = "zs_run_";
  for (const char c : column) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += plain ? c : '_';
  }
  while (!taken.insert(name).second) name += "_";
  return name;
}

std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return to_text(value);
}

}  // namespace

std::string to_openmetrics(const Sheet& sheet) {
  const auto cell = [&](const std::vector<std::string>& row, const char* column) {
    const auto at = std::find(sheet.header.begin(), sheet.header.end(), column);
    return at == sheet.header.end() ? std::string() : row[static_cast<std::size_t>(at - sheet.header.begin())];
  };
  const auto labels = [&](const std::vector<std::string>& row, const std::string& more) {
    std::string text;
    for (const char* const column : {"run_id", "run_name", "sweep_name"}) {
      if (const std::string value = cell(row, column); !value.empty())
        text += (text.empty() ? "" : ",") + std::string(column) + "=\"" + quoted(value) + "\"";
    }
    return "{" + text + (text.empty() || more.empty() ? "" : ",") + more + "}";
  };
  std::set<std::string> taken = {"zs_run_status"};
  std::string text;
  for (std::size_t i = 0; i < sheet.header.size(); ++i) {
    const std::string& column = sheet.header[i];
    if (topic(column) != Topic::metric) continue;
    std::string samples;
    for (const auto& row : sheet.rows) {
      if (const auto number = parse_real(row[i])) samples += labels(row, "") + " " + value_text(*number) + "\n";
    }
    if (samples.empty()) continue;
    const std::string name = metric_name(column, taken);
    text += "# TYPE " + name + " gauge\n# HELP " + name + " " + quoted(std::string(attribute::label(column))) + "\n";
    for (std::size_t at = 0; at < samples.size(); at = samples.find('\n', at) + 1)
      text += name + samples.substr(at, samples.find('\n', at) + 1 - at);
  }
  std::string states;
  for (const auto& row : sheet.rows) {
    if (const std::string status = cell(row, "status"); !status.empty())
      states += "zs_run_status" + labels(row, "status=\"" + quoted(status) + "\"") + " 1\n";
  }
  if (!states.empty()) text += "# TYPE zs_run_status gauge\n# HELP zs_run_status what has become of the run\n" + states;
  return text + "# EOF\n";
}

}  // namespace zs::registry
