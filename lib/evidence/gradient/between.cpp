// SPDX-License-Identifier: Apache-2.0
#include "gradient/between.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "tensorfile/state_dict.hpp"

namespace zs::gradient {
namespace {

constexpr std::size_t kPiece = 1 << 14;  // elements of each layer

/// The layers that share the shapes of most, in order.
std::vector<std::size_t> of_one_shape(const History& history) {
  std::map<std::vector<tensorfile::Shape>, std::vector<std::size_t>> shapes;
  for (std::size_t i = 0; i < history.layers.size(); ++i) {
    std::vector<tensorfile::Shape> shape;
    for (const std::size_t tensor : history.layers[i].tensors) shape.push_back(history.shapes[tensor]);
    if (!shape.empty()) shapes[shape].push_back(i);
  }
  std::vector<std::size_t> all;
  for (const auto& [shape, layers] : shapes) {
    if (layers.size() > all.size()) all = layers;
  }
  return all.size() < 2 ? std::vector<std::size_t>{} : all;
}

}  // namespace

Between between(const History& history, std::size_t checkpoint, std::size_t most) {
  Between result;
  const std::vector<std::size_t> all = of_one_shape(history);
  if (all.empty()) return result;
  const std::size_t count = std::min(most, all.size());
  for (std::size_t i = 0; i < count; ++i) result.layers.push_back(all[i * (all.size() - 1) / (count - 1)]);
  result.left_out = all.size() - count;
  const tensorfile::StateDict file = tensorfile::open_state_dict(history.checkpoints[checkpoint].source.path);
  std::vector<double> products(count * count);
  std::vector<std::vector<float>> pieces(count, std::vector<float>(kPiece));
  const std::size_t tensors = history.layers[all.front()].tensors.size();
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
