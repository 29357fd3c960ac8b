// SPDX-License-Identifier: Apache-2.0
#include "pretrained/merge.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"

namespace zs::pretrained {
namespace {

using tensorfile::Tensor;

constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight", kWeight = ".weight";

/// How adapters are added.
struct Rule {
  double scale;
  bool transposed;  ///< weights are [in, out]
};

Rule rule_of(const std::string& path) {
  const nlohmann::json json = read_json(path);
  const auto number = [&](const char* key) {
    if (!json.is_object() || !json.contains(key) || !json[key].is_number())
      throw Error(path, 0, std::string("has no number ") + key);
    return json[key].get<double>();
  };
  const auto truth = [&](const char* key) { return json.value(key, nlohmann::json()) == true; };
  const double rank = number("r"), alpha = number("lora_alpha");
  return {alpha / (truth("use_rslora") ? std::sqrt(rank) : rank), truth("fan_in_fan_out")};
}

std::vector<float> floats(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.count()));
  tensorfile::read_f32(tensor, values);
  return values;
}

/// weight + scale B A, of A [R, I] and B [O, R].
std::vector<float> sum(const Tensor& weight, const Tensor& a_RI, const Tensor& b_OR, Rule rule) {
  std::vector<float> all = floats(weight);
  const std::vector<float> a = floats(a_RI), b = floats(b_OR);
  const auto R = static_cast<std::size_t>(a_RI.shape[0]), I = static_cast<std::size_t>(a_RI.shape[1]),
             O = static_cast<std::size_t>(b_OR.shape[0]);
  std::vector<double> row(I);
  for (std::size_t o = 0; o < O; ++o) {
    std::fill(row.begin(), row.end(), 0.0);
    for (std::size_t r = 0; r < R; ++r) {
      for (std::size_t i = 0; i < I; ++i) row[i] += static_cast<double>(b[o * R + r]) * a[r * I + i];
    }
    for (std::size_t i = 0; i < I; ++i) {
      float& value = all[rule.transposed ? i * O + o : o * I + i];
      value = static_cast<float>(value + rule.scale * row[i]);
    }
  }
  return all;
}

}  // namespace

tensorfile::NamedTensors merged(const tensorfile::StateDict& weights, const std::string& configuration) {
  const Rule rule = rule_of(configuration);
  tensorfile::NamedTensors all;
  for (const auto& [name, tensor] : weights.entries()) {
    if (name.ends_with(kA) || name.ends_with(kB)) {
      const std::string of = name.substr(0, name.size() - kA.size()) + std::string(kWeight);
      if (!weights.find(of)) throw Error(weights.path(), 0, name + " adapts " + of + ", which is not there");
      continue;
    }
    const std::string module = name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : name;
    const Tensor *const a = weights.find(module + std::string(kA)), *const b = weights.find(module + std::string(kB));
    if (!a || !b) {
      all.emplace_back(name, tensor);
      continue;
    }
    const bool fits = tensor.shape.size() == 2 && a->shape.size() == 2 && b->shape.size() == 2 &&
                      a->shape[0] == b->shape[1] && a->shape[1] == tensor.shape[rule.transposed ? 0 : 1] &&
                      b->shape[0] == tensor.shape[rule.transposed ? 1 : 0];
    if (!fits) throw Error(weights.path(), 0, "the adapter of " + name + " has other shapes than it");
    const auto produce = [tensor, a, b, rule](const tensorfile::Sink& sink) {
      const std::vector<float> values = sum(tensor, *a, *b, rule);
      sink({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
    };
    const auto size = static_cast<std::uint64_t>(tensor.count()) * sizeof(float);
    all.emplace_back(name, tensorfile::make_tensor(tensorfile::Dtype::f32, tensor.shape,
                                                   tensorfile::Storage::produce(size, produce)));
  }
  return all;
}

}  // namespace zs::pretrained
