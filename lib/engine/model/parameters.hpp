// SPDX-License-Identifier: Apache-2.0
// What the families share in listing a unit's parameters: how each kind begins, and where a layer's lie in the list.
#pragma once
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernels.hpp"
#include "model/model.hpp"
#include "unit/unit.hpp"

namespace zs::model {

/// What begins as N(init_mean, init_std): weights of products, and embeddings. `keys` as unit::Parameter has it.
unit::Parameter matrix(const std::string& name, std::vector<std::int64_t> shape, const Settings& settings,
                       const std::string& keys);
/// What is added, and begins as 0.
unit::Parameter bias(const std::string& name, std::int64_t size, const std::string& keys);
/// What a norm multiplies with, and begins as 1.
unit::Parameter scale(const std::string& name, std::int64_t size, const std::string& keys);

/// `parameters` as a unit has them: as they are, or begun as init_gaussian says, with their adapters behind them, and
/// frozen where Adaptation says so. `prefix`, with which their names begin, is left out by files of the model without
/// its head.
std::vector<unit::Parameter> begun(std::vector<unit::Parameter> parameters, const std::string& prefix,
                                   const Settings& settings);

/// The places of a layer's tensors among the parameters of its unit; -1 for one that it has not.
struct Layer {
  int weight = -1, bias = -1;
};

/// The parameters of a unit one after another, their names with a prefix.
class ParameterList {
 public:
  ParameterList(std::string prefix, const Settings& settings) : prefix_(std::move(prefix)), settings_(settings) {}

  /// A product with weights [out, in], named NAME.weight and NAME.bias.
  Layer linear(const std::string& name, std::int64_t out, std::int64_t in, const std::string& keys, bool with_bias);
  /// A norm over numbers of `size`.
  Layer norm(const std::string& name, std::int64_t size, const std::string& keys, bool with_bias);
  const std::vector<unit::Parameter>& parameters() const { return parameters_; }

 private:
  std::string prefix_;
  const Settings& settings_;
  std::vector<unit::Parameter> parameters_;

  int add(unit::Parameter parameter);
};

/// The tensor at a place; undefined for -1.
inline at::Tensor tensor_at(std::span<const at::Tensor> own, int place) {
  return place < 0 ? at::Tensor() : own[static_cast<std::size_t>(place)];
}

/// The adapter of the product at a place of a unit's parameters; undefined where it has none, and for -1.
kernel::Adapter adapter_of(const unit::Unit& unit, std::span<const at::Tensor> own, int place);

/// The blocks of a folder that a model leaves out: those numbered from its own num_layers to `total`, whose names begin
/// with one of `prefixes` and the number.
std::vector<unit::Extra> left_out_blocks(const Model& model, std::int64_t total,
                                         std::initializer_list<std::string> prefixes);

}  // namespace zs::model
