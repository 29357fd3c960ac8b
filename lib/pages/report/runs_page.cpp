// SPDX-License-Identifier: Apache-2.0
#include "report/runs_page.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/number.hpp"
#include "figure/svg.hpp"
#include "metric/file.hpp"
#include "report/render.hpp"
#include "report/style.hpp"

namespace zs::report {
namespace {

namespace fs = std::filesystem;
using figure::escaped;
using nlohmann::ordered_json;

constexpr std::size_t kPoints = 480'000;  // of all runs together
constexpr std::size_t kMost = 512, kLeast = 16;

std::string base64(const void* data, std::size_t size) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* const bytes = static_cast<const unsigned char*>(data);
  std::string text;
  text.reserve((size + 2) / 3 * 4);
  for (std::size_t i = 0; i < size; i += 3) {
    const std::size_t rest = std::min<std::size_t>(3, size - i);
    std::uint32_t group = std::uint32_t{bytes[i]} << 16;
    if (rest > 1) group |= std::uint32_t{bytes[i + 1]} << 8;
    if (rest > 2) group |= bytes[i + 2];
    for (std::size_t k = 0; k < 4; ++k) text += k <= rest ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

template <typename T>
std::string base64(const std::vector<T>& values) {
  static_assert(std::endian::native == std::endian::little);  // as browsers read them
  return base64(values.data(), values.size() * sizeof(T));
}

/// FNV-1a of a step and the bits of its loss, behind those before.
std::uint32_t hashed(std::uint32_t before, std::int64_t step, double loss) {
  const std::uint64_t words[] = {static_cast<std::uint64_t>(step), std::bit_cast<std::uint64_t>(loss)};
  unsigned char bytes[sizeof words];
  std::memcpy(bytes, words, sizeof words);
  for (const unsigned char byte : bytes) before = (before ^ byte) * 16777619U;
  return before;
}

/// A run's losses: {"n": rows, "step": "base64 of uint32", "loss": "... of float32", "hash": "... of uint32"}; null of
/// a run without any.
ordered_json curve(const metric::Run& run, std::size_t most) {
  const metric::Column* const steps = run.records.find("step");
  const metric::Column* const losses = run.records.find("loss");
  if (!steps || !losses || steps->type() == metric::Type::text || losses->type() == metric::Type::text) return nullptr;
  std::vector<std::pair<std::int64_t, double>> points;
  for (std::size_t row = 0; row < run.records.rows(); ++row) {
    if (steps->absent(row) || losses->absent(row)) continue;
    const double step = steps->real(row);
    if (!points.empty() && points.back().first == static_cast<std::int64_t>(step)) continue;  // of another rank
    points.emplace_back(static_cast<std::int64_t>(step), losses->real(row));
  }
  if (points.empty()) return nullptr;
  const std::int64_t span = points.back().first - points.front().first + 1;
  std::int64_t stride = 1;
  while (span / stride > static_cast<std::int64_t>(most)) stride *= 2;
  std::vector<std::uint32_t> at, hashes;
  std::vector<float> values;
  std::uint32_t hash = 2166136261U;
  bool finite = true;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& [step, loss] = points[i];
    hash = hashed(hash, step, loss);
    finite = finite && std::isfinite(loss);
    if (step % stride != 0 && i + 1 < points.size()) continue;
    at.push_back(static_cast<std::uint32_t>(step));
    // What was not finite since the last point is seen in this one.
    values.push_back(finite ? static_cast<float>(loss) : std::nanf(""));
    hashes.push_back(hash);
    finite = true;
  }
  return {{"n", points.size()}, {"step", base64(at)}, {"loss", base64(values)}, {"hash", base64(hashes)}};
}

/// JSON that may stand within a script.
std::string script_json(const ordered_json& value) {
  std::string text = value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3) text.insert(at + 1, "\\");
  for (std::size_t at = 0; (at = text.find("<!", at)) != std::string::npos; at += 7) text.replace(at, 2, "\\u003c!");
  return text;
}

/// The same of a metric file, null where there is none.
ordered_json curve_of(const std::string& path, std::size_t most, const FaultSink& faults) {
  if (std::error_code failure; !fs::exists(path, failure)) return nullptr;
  try {
    const metric::Store store = metric::read(path);
    return store.runs.empty() ? ordered_json() : curve(store.runs.front(), most);
  } catch (const std::exception& error) {
    faults({path, 0, error.what()});
    return nullptr;
  }
}

/// What a click on the run of this folder opens: its report, else its log, "" where it has neither.
std::string link_of(const std::string& run, const std::string& folder) {
  for (const char* const name : {"/report.html", "/run.log"}) {
    std::error_code failure;
    if (fs::exists(run + name, failure)) return fs::proximate(run + name, folder.empty() ? "." : folder).string();
  }
  return "";
}

ordered_json data_of(const registry::Runs& runs, const RunsPage& page, const FaultSink& faults) {
  ordered_json data;
  data["columns"] = ordered_json::array();
  for (const registry::Column& column : runs.columns) {
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
    const bool shown = std::find(page.columns.begin(), page.columns.end(), column.name) != page.columns.end();
    data["columns"].push_back({{"name", column.name}, {"shown", shown}, {"values", values}, {"codes", codes}});
  }
  const std::size_t most = std::clamp(kPoints / std::max<std::size_t>(1, page.rows.size()), kLeast, kMost);
  data["curves"] = ordered_json::array();
  data["links"] = ordered_json::array();
  for (const std::size_t row : page.rows) {
    const std::string run = page.registry + "/" + runs.text(row, "run_id");
    data["curves"].push_back(curve_of(run + "/metrics.h5", most, faults));
    data["links"].push_back(link_of(run, page.folder));
  }
  return data;
}

}  // namespace

std::string to_html(const registry::Runs& runs, const RunsPage& page, const figure::Theme& theme,
                    const FaultSink& faults) {
  const std::string again =
      page.every > 0 ? "<meta name=\"zs-every\" content=\"" + std::to_string(page.every) + "\">\n" : "";
  return html_head(page.title, theme, std::string(kStyle) + kRunsStyle, again) + "<main class=\"runs\">\n<h1>" +
         escaped(page.title) + "</h1>\n" + kRunsBody + "<footer>Written by " + escaped(page.tool) +
         ".</footer>\n</main>\n<script type=\"application/json\" id=\"data\">" +
         script_json(data_of(runs, page, faults)) + "</script>\n<script>" + kRunsScript +
         "</script>\n</body>\n</html>\n";
}

}  // namespace zs::report
