// SPDX-License-Identifier: Apache-2.0
#include "report/runs_page.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/number.hpp"
#include "base/text.hpp"
#include "compare/precision.hpp"
#include "figure/svg.hpp"
#include "report/render.hpp"
#include "report/words.hpp"
#include "stat/summary_columns.hpp"
#include "summary/source.hpp"

namespace zs::report {
namespace {

using figure::escaped;
using nlohmann::ordered_json;

constexpr std::size_t kPoints = 480'000;  // for all runs together
constexpr std::size_t kMost = 512, kLeast = 16;

template <typename T>
std::string base64(const std::vector<T>& values) {
  static_assert(std::endian::native == std::endian::little);  // as browsers read them
  return to_base64({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

/// FNV-1a of a step and the bits of its loss, continued from `before`.
std::uint32_t hashed(std::uint32_t before, std::int64_t step, double loss) {
  const std::uint64_t words[] = {static_cast<std::uint64_t>(step), std::bit_cast<std::uint64_t>(loss)};
  unsigned char bytes[sizeof words];
  std::memcpy(bytes, words, sizeof words);
  for (const unsigned char byte : bytes) before = (before ^ byte) * 16777619U;
  return before;
}

std::int64_t stride_of(std::int64_t span, std::size_t most) {
  std::int64_t stride = 1;
  while (span / stride > static_cast<std::int64_t>(most)) stride *= 2;
  return stride;
}

/// {"n": rows, "step": "base64 of uint32", "loss": "... of float32", "hash": "... of uint32"}, and "printed": true
/// where a log rounded them; null of a run without.
ordered_json json_of(const Curve* curve) {
  if (!curve) return nullptr;
  ordered_json json = {{"n", curve->rows},
                       {"step", base64(curve->at)},
                       {"loss", base64(curve->values)},
                       {"hash", base64(curve->hashes)}};
  if (!curve->every_bit) json["printed"] = true;
  return json;
}

/// JSON that may be inside a script.
std::string script_json(const ordered_json& value) {
  std::string text = value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3) text.insert(at + 1, "\\");
  for (std::size_t at = 0; (at = text.find("<!", at)) != std::string::npos; at += 7) text.replace(at, 2, "\\u003c!");
  return text;
}

/// Columns that say which run it is come first, then its losses: what it was configured with may be many columns.
int place_of(const registry::Column* column) {
  const registry::Topic topic = registry::topic(column->name);
  if (topic == registry::Topic::identity) return 0;
  return topic == registry::Topic::metric && column->name.find("loss") != std::string::npos ? 1 : 2;
}

ordered_json data_of(const registry::Runs& runs, const RunsPage& page) {
  ordered_json data;
  data["columns"] = ordered_json::array();
  std::vector<const registry::Column*> columns;
  for (const registry::Column& column : runs.columns) columns.push_back(&column);
  std::ranges::stable_sort(columns, {}, place_of);
  for (const registry::Column* const from : columns) {
    const registry::Column& column = *from;
    std::vector<std::uint32_t> places(column.values.size(), UINT32_MAX), codes;
    ordered_json values = {""};
    if (!places.empty()) places[0] = 0;
    for (const std::size_t row : page.rows) {
      std::uint32_t& place = places[column.codes[row]];
      if (place == UINT32_MAX) {
        place = static_cast<std::uint32_t>(values.size());
        values.push_back(column.values[column.codes[row]]);
      }
      codes.push_back(place);
    }
    if (values.size() == 1) continue;  // none of these runs has it
    const bool shown = std::ranges::find(page.columns, column.name) != page.columns.end();
    ordered_json& made = data["columns"].emplace_back(ordered_json{{"name", column.name}, {"shown", shown}});
    if (place_of(from) == 1) {  // losses, as other pages print them; the values are exact
      for (const auto& value : values) {
        const auto loss = parse_real(value.get_ref<const std::string&>());
        made["texts"].push_back(loss ? loss_text(*loss) : value.get<std::string>());
      }
    }
    made["values"] = std::move(values), made["codes"] = std::move(codes);
  }
  const std::size_t most = std::clamp(kPoints / std::max<std::size_t>(1, page.rows.size()), kLeast, kMost);
  data["curves"] = ordered_json::array();
  data["links"] = ordered_json::array();
  for (const std::size_t row : page.rows) {
    data["curves"].push_back(json_of(page.curve(row, most)));
    data["links"].push_back(page.link(row));
  }
  return data;
}

/// The distinguishing columns that zs-aggregate's table has, too: the others of a summary can be chosen.
std::vector<std::string> of_table(std::vector<std::string> columns) {
  std::erase_if(columns, [](const std::string& name) {
    const auto column = std::ranges::find(stat::kSummaryColumns, name, &stat::SummaryColumn::name);
    if (column == stat::kSummaryColumns.end()) return registry::topic(name) == registry::Topic::metric;
    return column->table.empty() || name == "condition";  // its run_name is the same
  });
  return columns;
}

}  // namespace

std::optional<Curve> curve_of(const metric::Run& run, std::size_t most) {
  const metric::Column* const steps = run.records.find("step");
  const metric::Column* const losses = run.records.find("loss");
  if (!steps || !losses || steps->type() == metric::Type::text || losses->type() == metric::Type::text) return {};
  std::vector<std::pair<std::int64_t, double>> points;
  for (std::size_t row = 0; row < run.records.rows(); ++row) {
    if (steps->absent(row) || losses->absent(row)) continue;
    const double step = steps->real(row);
    if (!points.empty() && points.back().first == static_cast<std::int64_t>(step)) continue;  // of another rank
    points.emplace_back(static_cast<std::int64_t>(step), losses->real(row));
  }
  if (points.empty()) return {};
  Curve curve{.rows = points.size(), .span = points.back().first - points.front().first + 1};
  curve.stride = stride_of(curve.span, most);
  curve.every_bit = compare::precision_of(run, *losses).every_bit;
  std::uint32_t hash = 2166136261U;
  bool finite = true;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& [step, loss] = points[i];
    hash = hashed(hash, step, loss);
    finite = finite && std::isfinite(loss);
    if (step % curve.stride != 0 && i + 1 < points.size()) continue;
    curve.at.push_back(static_cast<std::uint32_t>(step));
    curve.values.push_back(finite ? static_cast<float>(loss) : std::nanf(""));
    curve.hashes.push_back(hash);
    finite = true;
  }
  return curve;
}

bool fits(const Curve& curve, std::size_t most) { return curve.stride == stride_of(curve.span, most); }

std::string to_html(const registry::Runs& runs, const RunsPage& page, const figure::Theme& theme) {
  const std::string again =
      page.every > 0 ? "<meta name=\"zs-every\" content=\"" + std::to_string(page.every) + "\">\n" : "";
  return html_head(page.title, theme, std::string(kStyle) + kRunsStyle, again) + "<main class=\"runs\">\n<h1>" +
         escaped(page.title) + "</h1>\n" + kRunsBody + "<footer>Written by " + escaped(page.tool) +
         ".</footer>\n</main>\n<script type=\"application/json\" id=\"data\">" + script_json(data_of(runs, page)) +
         "</script>\n<script>" + kRunsScript + "</script>\n</body>\n</html>\n";
}

std::string logs_page(const metric::Store& store, registry::Question question, RunsPage page,
                      const std::map<std::string, std::string>& links) {
  const registry::Runs runs = summary::as_runs(store);
  question.telling = question.show.empty();
  registry::Answer answer = registry::ask(runs, question);
  if (question.telling) answer.columns = of_table(std::move(answer.columns));
  std::map<std::string, std::optional<Curve>> curves;
  page.rows = answer.rows, page.columns = answer.columns;
  page.curve = [&](std::size_t row, std::size_t most) -> const Curve* {
    const std::string& name = runs.text(row, "condition");
    const auto run = std::ranges::find(store.runs, name, &metric::Run::name);
    if (run == store.runs.end()) return nullptr;
    const auto& curve = curves[name] = curve_of(*run, most);
    return curve ? &*curve : nullptr;
  };
  page.link = [&](std::size_t row) {
    const auto link = links.find(runs.text(row, "condition"));
    return link == links.end() ? "" : link_from(page.folder, link->second);
  };
  return to_html(runs, page, {});
}

std::string link_from(const std::string& folder, const std::string& file) {
  return std::filesystem::proximate(file, folder.empty() ? "." : folder).string();
}

}  // namespace zs::report
