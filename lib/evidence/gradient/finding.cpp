// SPDX-License-Identifier: Apache-2.0
#include "gradient/finding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/number.hpp"

namespace zs::gradient {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return kNan;
  std::sort(values.begin(), values.end());
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
  std::vector<double> all;
  for (const Measure& layer : checkpoint.layers) {
    if (sound(layer.rms())) all.push_back(layer.rms());
  }
  return all.size() < kFewLayers ? kNan : median(std::move(all));
}

std::vector<Finding> findings(const History& history) {
  std::vector<Finding> all;
  for (std::size_t checkpoint = 0; checkpoint < history.checkpoints.size(); ++checkpoint) {
    const Checkpoint& now = history.checkpoints[checkpoint];
    const double middle = median_rms(now);
    for (std::size_t layer = 0; layer < now.layers.size(); ++layer) {
      const Measure& measure = now.layers[layer];
      if (measure.non_finite() > 0) {
        all.push_back({Trouble::not_finite, layer, checkpoint, kNan});
        continue;
      }
      if (measure.all_zero()) {
        all.push_back({Trouble::zero, layer, checkpoint, 0});
        continue;
      }
      const double across = measure.rms() / middle, grown = measure.norm() / earlier_norm(history, checkpoint, layer);
      if (across < 1 / kAcross) all.push_back({Trouble::vanishing, layer, checkpoint, across});
      if (across > kAcross) all.push_back({Trouble::exploding, layer, checkpoint, across});
      if (grown > kGrowth) all.push_back({Trouble::growing, layer, checkpoint, grown});
    }
  }
  return all;
}

std::vector<Finding> worst_first(std::vector<Finding> findings) {
  const auto distance = [](const Finding& finding) {
    if (finding.trouble == Trouble::not_finite) return 2 * std::numeric_limits<double>::max_exponent + 1.0;
    return std::min(std::fabs(std::log2(finding.ratio)), 2.0 * std::numeric_limits<double>::max_exponent);
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&](const Finding& a, const Finding& b) { return distance(a) > distance(b); });
  return findings;
}

std::optional<Finding> at(const std::vector<Finding>& findings, std::size_t checkpoint, std::size_t layer) {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.checkpoint == checkpoint && finding.layer == layer;
  });
  if (found == findings.end()) return {};
  return *found;
}

double depth_factor(const History& history, std::size_t checkpoint) {
  std::vector<double> blocks;
  for (std::size_t layer = 0; layer < history.layers.size(); ++layer) {
    if (history.layers[layer].block) blocks.push_back(history.checkpoints[checkpoint].layers[layer].rms());
  }
  if (blocks.size() < 2 || !std::all_of(blocks.begin(), blocks.end(), sound)) return kNan;
  return std::pow(blocks.front() / blocks.back(), 1.0 / static_cast<double>(blocks.size() - 1));
}

}  // namespace zs::gradient
