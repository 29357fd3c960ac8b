// SPDX-License-Identifier: Apache-2.0
#include "model/parameters.hpp"

#include "base/number.hpp"
#include "model/adaptation.hpp"

namespace zs::model {

using unit::Parameter;
using Init = Parameter::Init;

Parameter matrix(const std::string& name, std::vector<std::int64_t> shape, const Settings& settings,
                 const std::string& keys) {
  return {.name = name, .shape = std::move(shape), .mean = settings.init_mean, .std = settings.init_std, .keys = keys};
}

Parameter bias(const std::string& name, std::int64_t size, const std::string& keys) {
  return {.name = name, .shape = {size}, .init = Init::zeros, .decay = false, .keys = keys};
}

Parameter scale(const std::string& name, std::int64_t size, const std::string& keys) {
  return {.name = name, .shape = {size}, .init = Init::ones, .decay = false, .keys = keys};
}

std::vector<Parameter> begun(std::vector<Parameter> parameters, const std::string& prefix, const Settings& settings) {
  for (Parameter& parameter : parameters) {
    const std::string& name = parameter.name_in_files();
    if (name.starts_with(prefix)) parameter.other_name = name.substr(prefix.size());
    if (!settings.init_gaussian) continue;
    parameter.init = Init::normal;
    parameter.mean = settings.init_mean;
    parameter.std = settings.init_std;
  }
  return adapted(std::move(parameters), settings.adaptation);
}

kernel::Adapter adapter_of(const unit::Unit& unit, std::span<const at::Tensor> owned, int place) {
  if (place < 0) return {};
  const Parameter& weight = unit.parameters()[static_cast<std::size_t>(place)];
  if (weight.adapter < 0) return {};
  return {tensor_at(owned, weight.adapter), tensor_at(owned, weight.adapter + 1), weight.adapter_scale};
}

int ParameterList::add(Parameter parameter) {
  parameter.name = prefix_ + parameter.name;
  if (!parameter.stack.empty()) parameter.stack = prefix_ + parameter.stack;
  return append(std::move(parameter));
}

int ParameterList::append(Parameter parameter) {
  parameters_.push_back(std::move(parameter));
  return static_cast<int>(parameters_.size()) - 1;
}

Layer ParameterList::linear(const std::string& name, std::int64_t out, std::int64_t in, const std::string& keys,
                            bool with_bias) {
  Layer made{.weight = append(matrix(prefix_ + name + ".weight", {out, in}, settings_, keys))};
  parameters_.back().product = Parameter::Product::out_in;
  if (with_bias) made.bias = append(bias(prefix_ + name + ".bias", out, keys));
  return made;
}

Layer ParameterList::norm(const std::string& name, std::int64_t size, const std::string& keys, bool with_bias) {
  Layer made{.weight = append(scale(prefix_ + name + ".weight", size, keys))};
  if (with_bias) made.bias = append(bias(prefix_ + name + ".bias", size, keys));
  return made;
}

void ParameterList::multiplied_together(std::initializer_list<Layer> layers) {
  for (const Layer& layer : layers) {
    if (layer.weight >= 0) parameters_[static_cast<std::size_t>(layer.weight)].float8_scale = scales_;
  }
  ++scales_;
}

std::vector<unit::Extra> left_out_blocks(const Model& model, std::int64_t total,
                                         std::initializer_list<std::string> prefixes) {
  std::vector<unit::Extra> found;
  for (std::int64_t i = model.num_layers; i < total; ++i) {
    for (const std::string& prefix : prefixes) found.push_back({.prefix = prefix + to_text(i) + "."});
  }
  return found;
}

}  // namespace zs::model
