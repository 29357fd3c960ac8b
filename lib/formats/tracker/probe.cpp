// SPDX-License-Identifier: Apache-2.0
#include "tracker/probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"

namespace zs::tracker {
namespace {

constexpr std::int64_t kChunk = 65536;  // elements that share a factor

/// splitmix64 of a number.
constexpr std::uint64_t mixed(std::uint64_t number) {
  std::uint64_t z = number + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

const std::vector<std::uint64_t>& weights() {
  static const auto all = [] {
    std::vector<std::uint64_t> made(kChunk);
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = mixed(i) | 1;
    return made;
  }();
  return all;
}

/// JSON as Python writes it: NaN and Infinity are values.
std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return to_text(value);
}

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

/// The last step that a record tells, and how many of its bytes are whole lines.
struct Recorded {
  std::int64_t step = 0;
  std::size_t bytes = 0;
};
Recorded recorded(const std::string& path) {
  Recorded found;
  const std::string content = Input(path).read_all();
  for (std::size_t end; (end = content.find('\n', found.bytes)) != std::string::npos; found.bytes = end + 1) {
    const auto row = nlohmann::json::parse(content.begin() + static_cast<std::ptrdiff_t>(found.bytes),
                                           content.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (!row.is_object()) continue;
    for (const char* const key : {"step", "end"}) {
      if (const auto value = row.find(key); value != row.end() && value->is_number_integer())
        found.step = std::max(found.step, value->get<std::int64_t>());
    }
  }
  return found;
}

std::string path_of(const std::string& folder, int rank) { return folder + "/rank-" + std::to_string(rank) + ".jsonl"; }

/// Whether a training that has made `done` steps can continue the file. Removes a line that a kill truncated.
AppendedFile::Begin begin(const std::string& path, std::int64_t done) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return AppendedFile::Begin::as_new;
  const Recorded before = recorded(path);
  if (done == 0 || before.step > done)
    throw Error(path, 0,
                "is there already, the record of another training up to step " + to_text(before.step) +
                    ": name another folder with --probe");
  std::filesystem::resize_file(path, before.bytes);
  return AppendedFile::Begin::behind;
}

}  // namespace

std::uint64_t probe_digest(std::span<const float> values, std::int64_t begin) {
  std::uint64_t total = 0;
  const std::uint64_t* const weight = weights().data();
  for (std::size_t at = 0; at < values.size();) {
    const std::int64_t place = begin + static_cast<std::int64_t>(at);
    const auto first = static_cast<std::size_t>(place % kChunk);
    const std::size_t size = std::min(static_cast<std::size_t>(kChunk) - first, values.size() - at);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const auto bits = static_cast<std::int64_t>(std::bit_cast<std::int32_t>(values[at + i]));
      sum += static_cast<std::uint64_t>(bits) * weight[first + i];
    }
    total += sum * (mixed(static_cast<std::uint64_t>(place / kChunk) ^ 0x5A5A5A5A) | 1);
    at += size;
  }
  return total;
}

ProbeWriter::ProbeWriter(const std::string& folder, int rank, int ranks, const std::string& library, std::int64_t done,
                         const std::string& computed)
    : rank_(rank), computed_(computed), file_(path_of(folder, rank), begin(path_of(folder, rank), done)) {
  // A name of this recording, so that a copy of it is known as one.
  std::random_device random;
  const std::uint64_t id = std::uint64_t{random()} << 32 | random();
  file_.append(
      fmt::format("{{\"zs_probe\": 1, \"rank\": {}, \"world_size\": {}, \"torch\": {}, \"id\": \"{:016x}\"}}\n", rank,
                  ranks, quoted(library), id));
}

std::string ProbeWriter::values_name(std::int64_t step) const {
  return fmt::format("step-{:08}.rank-{}.safetensors", step, rank_);
}

void ProbeWriter::step(std::int64_t step, double loss, const std::vector<std::int64_t>& targets,
                       const std::vector<ProbedPart>& parts, const std::string& values_file) {
  std::string line =
      fmt::format("{{\"step\": {}, \"computed\": {}, \"loss\": {}, \"targets\": [{}], \"tensors\": [", step,
                  computed_.empty() ? "null" : quoted(computed_), number(loss), fmt::join(targets, ", "));
  for (const ProbedPart& part : parts) {
    std::int64_t whole = 1;
    for (const std::int64_t extent : part.shape) whole *= extent;
    double squares = 0;
    for (const float value : part.values) squares += static_cast<double>(value) * static_cast<double>(value);
    line += fmt::format(
        "{}{{\"name\": {}, \"dtype\": \"F32\", \"of\": {}, \"shape\": [{}], \"begin\": {}, \"count\": {}, "
        "\"digest\": \"{:016x}\", \"squares\": {}}}",
        line.ends_with('[') ? "" : ", ", quoted(part.name), whole, fmt::join(part.shape, ", "), part.begin,
        part.values.size(), probe_digest(part.values, part.begin), number(squares));
  }
  file_.append(line + "], \"values\": " + (values_file.empty() ? "null" : quoted(values_file)) + "}\n");
  ++lines_;
}

void ProbeWriter::end(std::int64_t steps, std::int64_t every) {
  file_.append(
      fmt::format("{{\"end\": {}, \"rank\": {}, \"lines\": {}, \"every\": {}}}\n", steps, rank_, lines_, every));
}

}  // namespace zs::tracker
