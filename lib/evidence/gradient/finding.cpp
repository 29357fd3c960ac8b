// SPDX-License-Identifier: Apache-2.0
#include "gradient/finding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "base/number.hpp"
#include "tensorfile/state_dict.hpp"

namespace zs::gradient {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return kNan;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

bool sound(double value) { return std::isfinite(value) && value > 0; }

/// The median of a layer's norms at the checkpoints before.
double earlier_norm(const History& history, std::size_t checkpoint, std::size_t layer) {
  std::vector<double> norms;
  for (std::size_t i = 0; i < checkpoint; ++i) {
    const double norm = history.checkpoints[i].layers[layer].norm();
    if (sound(norm)) norms.push_back(norm);
  }
  return median(std::move(norms));
}

constexpr std::size_t kPiece = 1 << 14;  // elements of each layer

/// The layers that share the shapes of most, in order.
std::vector<std::size_t> of_one_shape(const History& history) {
  std::map<std::vector<tensorfile::Shape>, std::vector<std::size_t>> shapes;
  for (std::size_t i = 0; i < history.layers.size(); ++i) {
    std::vector<tensorfile::Shape> shape;
    for (const std::size_t tensor : history.layers[i].tensors) shape.push_back(history.shapes[tensor]);
    if (!shape.empty()) shapes[shape].push_back(i);
  }
  std::vector<std::size_t> largest;
  for (const auto& [shape, layers] : shapes) {
    if (layers.size() > largest.size()) largest = layers;
  }
  return largest.size() < 2 ? std::vector<std::size_t>{} : largest;
}

}  // namespace

std::string name(Trouble trouble) {
  switch (trouble) {
    case Trouble::not_finite:
      return "not finite";
    case Trouble::zero:
      return "zero";
    case Trouble::vanishing:
      return "vanishing";
    case Trouble::exploding:
    case Trouble::growing:
      break;
  }
  return "exploding";
}

double median_rms(const Checkpoint& checkpoint) {
  std::vector<double> sizes;
  for (const Measure& layer : checkpoint.layers) {
    if (sound(layer.rms())) sizes.push_back(layer.rms());
  }
  return sizes.size() < kFewLayers ? kNan : median(std::move(sizes));
}

std::vector<Finding> findings(const History& history) {
  std::vector<Finding> found;
  for (std::size_t checkpoint = 0; checkpoint < history.checkpoints.size(); ++checkpoint) {
    const Checkpoint& now = history.checkpoints[checkpoint];
    const double middle = median_rms(now);
    for (std::size_t layer = 0; layer < now.layers.size(); ++layer) {
      const Measure& measure = now.layers[layer];
      if (measure.non_finite() > 0) {
        found.push_back({Trouble::not_finite, layer, checkpoint, kNan});
        continue;
      }
      if (measure.all_zero()) {
        found.push_back({Trouble::zero, layer, checkpoint, 0});
        continue;
      }
      const double across = measure.rms() / middle, grown = measure.norm() / earlier_norm(history, checkpoint, layer);
      if (across < 1 / kAcross) found.push_back({Trouble::vanishing, layer, checkpoint, across});
      if (across > kAcross) found.push_back({Trouble::exploding, layer, checkpoint, across});
      if (grown > kGrowth) found.push_back({Trouble::growing, layer, checkpoint, grown});
    }
  }
  return found;
}

std::vector<Finding> worst_first(std::vector<Finding> findings) {
  const auto distance = [](const Finding& finding) {
    if (finding.trouble == Trouble::not_finite) return 2 * std::numeric_limits<double>::max_exponent + 1.0;
    return std::min(std::fabs(std::log2(finding.ratio)), 2.0 * std::numeric_limits<double>::max_exponent);
  };
  std::ranges::stable_sort(findings, [&](const Finding& a, const Finding& b) { return distance(a) > distance(b); });
  return findings;
}

std::optional<Finding> at(const std::vector<Finding>& findings, std::size_t checkpoint, std::size_t layer) {
  const auto found = std::ranges::find_if(
      findings, [&](const Finding& finding) { return finding.checkpoint == checkpoint && finding.layer == layer; });
  if (found == findings.end()) return {};
  return *found;
}

double depth_factor(const History& history, std::size_t checkpoint) {
  std::vector<double> blocks;
  for (std::size_t layer = 0; layer < history.layers.size(); ++layer) {
    if (history.layers[layer].block) blocks.push_back(history.checkpoints[checkpoint].layers[layer].rms());
  }
  if (blocks.size() < 2 || !std::ranges::all_of(blocks, sound)) return kNan;
  return std::pow(blocks.front() / blocks.back(), 1.0 / static_cast<double>(blocks.size() - 1));
}

Between between(const History& history, std::size_t checkpoint, std::size_t most) {
  Between result;
  const std::vector<std::size_t> alike = of_one_shape(history);
  if (alike.empty()) return result;
  const std::size_t count = std::min(most, alike.size());
  for (std::size_t i = 0; i < count; ++i) result.layers.push_back(alike[i * (alike.size() - 1) / (count - 1)]);
  result.left_out = alike.size() - count;
  const tensorfile::StateDict file = tensorfile::open_state_dict(history.checkpoints[checkpoint].source.path);
  std::vector<double> products(count * count);
  std::vector<std::vector<float>> pieces(count, std::vector<float>(kPiece));
  const std::size_t tensors = history.layers[alike.front()].tensors.size();
  for (std::size_t tensor = 0; tensor < tensors; ++tensor) {
    std::vector<const tensorfile::Tensor*> each;
    for (const std::size_t layer : result.layers)
      each.push_back(&file.at(history.names[history.layers[layer].tensors[tensor]]));
    const std::int64_t values = each.front()->count();
    for (std::int64_t first = 0; first < values; first += static_cast<std::int64_t>(kPiece)) {
      const std::size_t size = std::min(kPiece, static_cast<std::size_t>(values - first));
      for (std::size_t i = 0; i < count; ++i) tensorfile::read_f32(*each[i], first, {pieces[i].data(), size});
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = i; j < count; ++j) {
          products[i * count + j] +=
              dot(std::span<const float>(pieces[i].data(), size), std::span<const float>(pieces[j].data(), size));
        }
      }
    }
    for (const tensorfile::Tensor* const one : each) one->storage->forget();
  }
  result.cosines.resize(count * count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      const double product = products[std::min(i, j) * count + std::max(i, j)];
      result.cosines[i * count + j] =
          cosine(product, std::sqrt(products[i * count + i]), std::sqrt(products[j * count + j]));
    }
  }
  return result;
}

}  // namespace zs::gradient
