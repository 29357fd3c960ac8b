// SPDX-License-Identifier: Apache-2.0
#include "comparison/golden.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "attribute/table.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "compare/records.hpp"
#include "comparison/two_runs.hpp"
#include "input/named.hpp"
#include "probe/answer.hpp"
#include "probefile/folder.hpp"
#include "probefile/read.hpp"

namespace zs::comparison {
namespace {

namespace fs = std::filesystem;
using probefile::changes, probefile::Environment;
using Ordered = nlohmann::ordered_json;

constexpr std::size_t kLargest = 200'000;  // bytes: more is not for a repository

bool is_recording(const std::string& folder) { return !probefile::ranks_in(folder).empty(); }

/// The entries of a folder whose paths are chosen, by name.
template <class Chosen>
std::vector<std::string> names_in(const std::string& folder, Chosen chosen) {
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(folder)) {
    if (chosen(entry.string())) names.push_back(entry.filename().string());
  }
  return names;
}

std::vector<std::string> folders_in(const std::string& folder) { return names_in(folder, is_recording); }

struct Golden {
  std::string path;                  ///< "" if there is none
  std::vector<std::string> changes;  ///< from its environment to the recording's
};

Golden nearest(const std::string& goldens, const Environment& environment) {
  Golden found;
  for (const std::string& name : folders_in(goldens)) {
    const std::string path = goldens + "/" + name;
    std::vector<std::string> apart = changes(environment_of(probefile::head_of(path)), environment);
    if (found.path.empty() || apart.size() < found.changes.size()) found = {path, std::move(apart)};
  }
  return found;
}

/// The name of an environment as a folder's: "torch-2.11.0-avx512-intel-xeon".
std::string name_of(const Environment& environment) {
  std::string name = "torch";
  for (const char* const key : {"torch", "gpu", "instruction set", "processor", "number format"}) {
    const auto found = environment.find(key);
    if (found != environment.end() && !(key == std::string("processor") && environment.contains("gpu")))
      name += "-" + found->second;
  }
  std::string plain;
  for (const unsigned char c : name) {
    const bool kept = std::isalnum(c) != 0 || c == '.' || c == '_';
    if (kept || (!plain.empty() && plain.back() != '-')) plain += kept ? static_cast<char>(std::tolower(c)) : '-';
  }
  while (!plain.empty() && plain.back() == '-') plain.pop_back();
  return plain;
}

/// The ranges of each sketch added up: what is left are the 8 sums of the whole tensor.
void shorten(Ordered& rows) {
  for (Ordered& row : rows) {
    std::string bytes = from_base64(row.at("sketch").get_ref<const std::string&>());
    std::vector<double> sums(bytes.size() / sizeof(double));
    std::memcpy(sums.data(), bytes.data(), bytes.size());
    for (std::size_t i = 8; i < sums.size(); ++i) sums[i % 8] += sums[i];
    sums.resize(std::min<std::size_t>(8, sums.size()));
    row.erase("elements");
    row["sketch"] = to_base64({reinterpret_cast<const char*>(sums.data()), sums.size() * sizeof(double)});
  }
}

/// Copies the lines of a recording, with short sketches and without values; of a floor without what no bound is taken
/// from. Returns the bytes written.
std::size_t write_short(const std::string& from, const std::string& to, bool floor = false) {
  fs::create_directories(to);
  std::size_t size = 0;
  for (const auto rank : probefile::ranks_in(from)) {
    std::string text;
    for (const std::string& line : lines_of(Input(probefile::path_of(from, static_cast<int>(rank))).read_all())) {
      if (line.empty()) continue;
      Ordered row = Ordered::parse(line);
      for (const char* const key : {"tensors", "locals", "outputs"}) {
        if (row.contains(key)) shorten(row[key]);
      }
      if (row.contains("values")) row["values"] = nullptr;
      if (floor && row.contains("locals")) row["locals"] = Ordered::array();
      text += row.dump() + "\n";
    }
    write_file(probefile::path_of(to, static_cast<int>(rank)), text);
    size += text.size();
  }
  return size;
}

/// The columns of a golden of values: those that the training decides, and those that zs does not know, such as
/// Megatron's num-zeros, unless their name says that they are measurements.
std::vector<std::string> columns_of(const Recorded& golden, const Recorded& values) {
  static constexpr std::array kMeasured = {"time", "second", "_ms", "-ms", "mem", "byte", "flop", "throughput", "util"};
  std::vector<std::string> names = compare::decided();
  for (const Recorded* const one : {&golden, &values}) {
    for (const metric::Column& column : one->run.records.columns) {
      const std::string name = lower(column.name);
      const bool measured =
          std::ranges::any_of(kMeasured, [&](const char* word) { return name.find(word) != name.npos; });
      if (!measured && column.type() != metric::Type::text && !attribute::find(column.name) &&
          std::ranges::find(names, column.name) == names.end())
        names.push_back(column.name);
    }
  }
  return names;
}

GoldenAnswer made(const std::string& verdict, const std::string& headline) {
  return {verdict, headline, {{"verdict", verdict}, {"headline", headline}}, false};
}

}  // namespace

Status GoldenAnswer::status() const {
  return verdict == "same" || verdict == "environment" ? Status::done
         : verdict == "code"                           ? Status::no
                                                       : Status::inconclusive;
}

std::vector<std::string> recordings_in(const std::string& folder) {
  return is_recording(folder) ? std::vector<std::string>() : folders_in(folder);
}

std::vector<std::string> tests_in(const std::string& goldens) {
  return names_in(goldens, [](const std::string& path) { return !folders_in(path).empty(); });
}

GoldenAnswer compare_golden(const std::string& goldens, const std::string& recording) {
  const Golden golden = nearest(goldens, environment_of(probefile::head_of(recording)));
  if (golden.path.empty()) return made("no golden", goldens + " has no golden: write one with --update");
  const std::string floor = golden.path + "/floor";
  const probe::Answer found = probe::compare(golden.path, recording, {}, 0, is_recording(floor) ? floor : "");
  const bool here = golden.changes.empty(), equal = compare::equal(found.verdict);
  const bool rounded = found.verdict == compare::Verdict::rounding;
  const bool differ = found.verdict == compare::Verdict::different || (rounded && here);
  const std::string changed = some_of(golden.changes, 6, "; ", "; and ");
  const std::string kind = found.line({"kind"});
  GoldenAnswer answer =
      equal ? made("same", here ? "the bits of the golden" : "the bits of the golden, in another environment")
      : differ
          ? made("code", rounded ? "other bits in the same environment, within rounding: " + kind : found.sentence())
      : rounded ? made("environment", changed + ": the differences are within rounding")
                : made("inconclusive", found.sentence());
  answer.rounded = rounded && here;
  answer.lines.emplace_back("golden", golden.path);
  answer.lines.emplace_back("environment", here ? "the same" : changed);
  for (const auto& [key, value] : found.lines) {
    if (key != "headline") answer.lines.emplace_back(key == "verdict" ? "comparison" : key, value);
  }
  return answer;
}

GoldenAnswer compare_golden_values(const std::string& goldens, const std::string& values,
                                   const compare::Tolerance& tolerance) {
  const std::string same_name = goldens + "/" + fs::path(values).filename().string();
  const std::string golden = fs::is_directory(goldens) && fs::exists(same_name) ? same_name : goldens;
  const auto read = [](const std::string& path) { return read_recorded(input::named(path, "", "zs-verify")); };
  const Recorded kept = read(golden), seen = read(values);
  const Answer found = compare_runs(kept, seen, tolerance, columns_of(kept, seen));
  const auto line = [&](const std::string& key) { return compare::line_of(found.lines, {key}); };
  const std::string first = line("step").empty() ? ""
                                                 : "from step " + line("step") + " on, " + line("what") + ": " +
                                                       line(golden) + " and " + line(values);
  const std::string why = !first.empty() ? first : !line("reason").empty() ? line("reason") : line("verdict");
  const bool differ = found.verdict == compare::Verdict::different || found.verdict == compare::Verdict::failed;
  GoldenAnswer answer = made(compare::equal(found.verdict) ? "same"
                             : differ                      ? "code"
                                                           : "inconclusive",
                             compare::equal(found.verdict) ? std::string(compare::name(found.verdict)) : why);
  answer.lines.emplace_back("golden", golden);
  for (const auto& [key, value] : found.lines) answer.lines.emplace_back(key == "verdict" ? "comparison" : key, value);
  return answer;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files = names_in(folder, is_file);
  const auto is_own = [](const fs::path& path) { return is_folder(path) && !fs::is_symlink(path); };
  for (const std::string& name : names_in(folder, is_own)) {
    for (const std::string& inner : files_in(folder + "/" + name)) files.push_back(name + "/" + inner);
  }
  std::ranges::sort(files);
  return files;
}

GoldenAnswer update_golden(const std::string& goldens, const std::string& recording, const std::string& floor) {
  const Environment environment = environment_of(probefile::head_of(recording));
  if (!floor.empty()) probe::compare(recording, recording, {}, 0, floor);  // throws if that is no floor
  const Golden before = nearest(goldens, environment);
  const bool replaces = !before.path.empty() && before.changes.empty();
  std::string moved = before.path.empty() ? "the first golden" : "a golden of another environment";
  const auto id = [](const std::string& path) { return probefile::head_of(path).id; };
  if (!before.path.empty() && !id(recording).empty() && id(before.path) == id(recording)) {
    moved = "nothing: the golden before is of this recording";
  } else if (!before.path.empty()) {
    const GoldenAnswer compared = compare_golden(goldens, recording);
    moved = replaces ? "beside the golden before: " + compared.headline
                     : "beside " + before.path + ": " + compared.verdict + ", " + compared.headline;
  }
  std::string path = replaces ? before.path : goldens + "/" + name_of(environment);
  for (int i = 2; !replaces && fs::exists(path); ++i)
    path = goldens + "/" + name_of(environment) + "-" + std::to_string(i);
  const std::string fresh = path + ".new";
  fs::remove_all(fresh);
  std::size_t size = write_short(recording, fresh);
  if (!floor.empty()) size += write_short(floor, fresh + "/floor", true);
  fs::remove_all(path);
  fs::rename(fresh, path);
  GoldenAnswer answer = made("written", path + ", " + to_text(static_cast<std::int64_t>((size + 999) / 1000)) + " kB");
  answer.lines.emplace_back("moved", moved);
  if (size > kLargest)
    answer.lines.emplace_back(
        "note", "it is larger than 200 kB: record fewer steps of a smaller model with ZS_PROBE=golden:DIR");
  return answer;
}

}  // namespace zs::comparison
