// SPDX-License-Identifier: Apache-2.0
#include "gradient/measure.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <sstream>

#include "base/file.hpp"
#include "base/json.hpp"
#include "base/number.hpp"
#include "checkpoints/folders.hpp"

namespace zs::gradient {
namespace {

/// A span of finite elements.
Measure of_finite(std::span<const float> values) {
  Measure measure;
  measure.count = static_cast<std::int64_t>(values.size());
  double sum = 0, squares = 0;
  float largest = 0;
  std::int64_t zeros = 0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
    largest = std::max(largest, std::fabs(value));
    zeros += value == 0;
  }
  measure.zeros = zeros;
  measure.squares = squares;
  measure.largest = largest;
  if (values.empty()) return measure;
  measure.mean = sum / static_cast<double>(values.size());
  // A second pass: the difference of two sums would lose precision if the mean is large.
  for (const float value : values) {
    const double difference = value - measure.mean;
    measure.deviations += difference * difference;
  }
  return measure;
}

using Parts = std::vector<std::string>;

Parts parts(const std::string& name) {
  std::istringstream stream(name);
  Parts result;
  for (std::string part; std::getline(stream, part, '.');) result.push_back(part);
  if (result.empty()) result.push_back(name);
  return result;
}

/// The place of the first part that is a number, or the number of parts.
std::size_t number_at(const Parts& parts) {
  const auto is_number = [](const std::string& part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
  };
  return static_cast<std::size_t>(std::ranges::find_if(parts, is_number) - parts.begin());
}

/// The common first part of all blocks' names, "transformer", or "".
std::string shared_root(const std::vector<Parts>& names) {
  std::string root;
  for (const Parts& name : names) {
    const std::size_t at = number_at(name);
    if (at == name.size()) continue;
    if (at < 2 || (!root.empty() && root != name[0])) return "";
    root = name[0];
  }
  return root;
}

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint_";
constexpr const char* kFile = "gradients.pt";
constexpr std::size_t kLargestState = 64 << 20;  // bytes

/// Other users may write to a registry: only regular files are opened, since reading a pipe would block.
bool has_gradients(const fs::path& folder) { return is_file(folder / kFile); }

std::optional<std::int64_t> step_in_name(const fs::path& folder) {
  const std::string name = folder.filename().string();
  if (!name.starts_with(kPrefix)) return {};
  return parse_int(std::string_view(name).substr(kPrefix.size()));
}

/// Steps done, from the checkpoint's own state, else from its folder's name.
std::optional<std::int64_t> step_of(const fs::path& folder) {
  const std::string path = (folder / "accelerator_states/state.json").string();
  if (!is_there(path)) return step_in_name(folder);
  try {
    return json_of(read_regular(path, kLargestState).bytes, path).at("step").get<std::int64_t>();
  } catch (const nlohmann::json::exception& error) {
    throw Error(path, 0, error.what());
  }
}

/// "runs/a/checkpoint_10/" as "runs/a/checkpoint_10".
fs::path plain(const std::string& name) {
  const fs::path path = fs::path(name).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

Source source(const fs::path& folder) {
  return {(folder / kFile).string(), folder.filename().string(), step_of(folder)};
}

const std::string kReason =
    "has no gradients.pt: it was saved with --save_gradients false, or on a signal by a zs-train that did not save "
    "them then";

void add_run(const fs::path& run, Sources& sources) {
  const std::vector<checkpoints::Checkpoint> saved = checkpoints::checkpoints_in(run.string());
  if (saved.empty()) throw Error(run.string(), 0, "has no checkpoint: train with --save_steps to have some");
  std::size_t added = 0;
  for (const checkpoints::Checkpoint& checkpoint : saved) {
    if (!has_gradients(checkpoint.path)) {
      sources.without.push_back(checkpoint.path);
    } else {
      sources.found.push_back(source(checkpoint.path));
      ++added;
    }
  }
  if (added == 0) throw Error(saved.back().path, 0, kReason + (saved.size() > 1 ? "; so has no other checkpoint" : ""));
}

}  // namespace

void Measure::add(std::span<const float> values) {
  while (!values.empty()) {
    const auto first_non_finite = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
    const auto finite_before = static_cast<std::size_t>(first_non_finite - values.begin());
    add(of_finite(values.first(finite_before)));
    if (first_non_finite == values.end()) return;
    ++count;
    (std::isnan(*first_non_finite) ? nans : infinities) += 1;
    values = values.subspan(finite_before + 1);
  }
}

void Measure::add(const Measure& other) {
  const auto mine = static_cast<double>(finite()), theirs = static_cast<double>(other.finite());
  if (theirs > 0) {  // Chan, Golub and LeVeque 1979
    const double difference = other.mean - mean;
    mean += difference * theirs / (mine + theirs);
    deviations += other.deviations + difference * difference * mine * theirs / (mine + theirs);
  }
  count += other.count;
  zeros += other.zeros;
  nans += other.nans;
  infinities += other.infinities;
  squares += other.squares;
  largest = std::max(largest, other.largest);
}

double Measure::norm() const {
  if (nans > 0) return kNan;
  return infinities > 0 ? std::numeric_limits<double>::infinity() : std::sqrt(squares);
}

double Measure::rms() const { return count > 0 ? norm() / std::sqrt(static_cast<double>(count)) : kNan; }

double Measure::variance() const { return finite() > 0 ? deviations / static_cast<double>(finite()) : kNan; }

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

double cosine(double dot, double norm_a, double norm_b) {
  const double product = norm_a * norm_b;
  if (!(product > 0) || !std::isfinite(product) || !std::isfinite(dot)) return kNan;
  return std::clamp(dot / product, -1.0, 1.0);
}

std::vector<Layer> layers(const std::vector<std::string>& names) {
  std::vector<Parts> split;
  split.reserve(names.size());
  for (const std::string& name : names) split.push_back(parts(name));
  const std::string root = shared_root(split);
  std::vector<Layer> made;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Parts& name = split[i];
    const std::size_t number = number_at(name), begin = !root.empty() && name.size() > 1 && name[0] == root ? 1 : 0;
    const bool block = number < name.size();
    std::string layer = name[begin];
    for (std::size_t part = begin + 1; block && part <= number; ++part) layer += "." + name[part];
    const auto [place, is_new] = places.try_emplace(layer, made.size());
    if (is_new) made.push_back({layer, block, {}});
    made[place->second].tensors.push_back(i);
  }
  return made;
}

Sources find(const std::vector<input::Named>& named) {
  Sources sources;
  for (const input::Named& one : named) {
    const fs::path path = plain(one.path);
    std::string subject = path.string();
    if (one.kind == input::Kind::checkpoint) {
      if (!has_gradients(path)) throw Error(path.string(), 0, kReason);
      sources.found.push_back(source(path));
    } else if (one.kind == input::Kind::tensors) {
      sources.found.push_back({path.string(), path.parent_path().filename().string(), step_of(path.parent_path())});
    } else {
      add_run(path, sources);
      subject = one.run.empty() ? fs::absolute(path).filename().string() : one.run;
    }
    if (sources.subject.empty()) sources.subject = subject;
  }
  return sources;
}

}  // namespace zs::gradient
