// SPDX-License-Identifier: Apache-2.0
// Lists a unit's parameters, for all families: the initial values of each kind, and the indices of a layer's tensors.
#pragma once
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernels.hpp"
#include "model/model.hpp"
#include "unit/unit.hpp"

namespace zs::model {

/// A parameter with initial values N(init_mean, init_std): for products and embeddings. `keys` as in unit::Parameter.
unit::Parameter matrix(const std::string& name, std::vector<std::int64_t> shape, const Settings& settings,
                       const std::string& keys);
/// An added parameter, initially 0.
unit::Parameter bias(const std::string& name, std::int64_t size, const std::string& keys);
/// The factor of a norm, initially 1.
unit::Parameter scale(const std::string& name, std::int64_t size, const std::string& keys);

/// `parameters` in the form of a unit: unchanged, or initialized by init_gaussian,
/// followed by their adapters, and frozen as Adaptation says. `prefix` is the
/// beginning of their names that files of the model without its head omit.
std::vector<unit::Parameter> begun(std::vector<unit::Parameter> parameters, const std::string& prefix,
                                   const Settings& settings);

/// The indices of a layer's tensors among the parameters of its unit; -1 for a missing one.
struct Layer {
  int weight = -1, bias = -1;
};

/// The parameters of a unit in order, with prefixed names.
class ParameterList {
 public:
  ParameterList(std::string prefix, const Settings& settings) : prefix_(std::move(prefix)), settings_(settings) {}

  /// A product with weights [out, in], named NAME.weight and NAME.bias.
  Layer linear(const std::string& name, std::int64_t out, std::int64_t in, const std::string& keys, bool with_bias);
  /// A norm over numbers of `size`.
  Layer norm(const std::string& name, std::int64_t size, const std::string& keys, bool with_bias);
  /// Weights of one product of 8 bits, which share a scale; those that are missing are left out.
  void multiplied_together(std::initializer_list<Layer> layers);
  /// Any other: the index of the parameter, whose name gets the prefix.
  int add(unit::Parameter parameter);
  const std::vector<unit::Parameter>& parameters() const { return parameters_; }

 private:
  std::string prefix_;
  const Settings& settings_;
  std::vector<unit::Parameter> parameters_;
  int scales_ = 0;

  int append(unit::Parameter parameter);
};

/// The tensor at an index; undefined for -1.
inline at::Tensor tensor_at(std::span<const at::Tensor> owned, int place) {
  return place < 0 ? at::Tensor() : owned[static_cast<std::size_t>(place)];
}

/// The adapter of the product at an index of a unit's parameters; undefined without one, and for -1.
kernel::Adapter adapter_of(const unit::Unit& unit, std::span<const at::Tensor> owned, int place);

/// The blocks of a folder that a model leaves out: those numbered from its num_layers to `total`, whose names begin
/// with one of `prefixes` and the number.
std::vector<unit::Extra> left_out_blocks(const Model& model, std::int64_t total,
                                         std::initializer_list<std::string> prefixes);

}  // namespace zs::model
