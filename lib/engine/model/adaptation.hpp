// SPDX-License-Identifier: Apache-2.0
// Decides which parameters of a model are trained: frozen ones by pattern, and low-rank adapters (LoRA, Hu et al. 2022)
// with the names, shapes and initial values of peft. Only this code decides it: it sets fields of unit::Parameter,
// which all other code reads.
#pragma once
#include <string>
#include <vector>

#include "unit/unit.hpp"

namespace zs::model {

struct Adaptation {
  int rank = 0;                        ///< of adapters; 0: none
  double alpha = 8;                    ///< the adapters' factor is alpha / rank
  bool rank_stabilized = false;        ///< the factor is alpha / sqrt(rank) instead (Kalajdzievski 2023)
  std::vector<std::string> targets{};  ///< products with an adapter: suffixes of their modules' names, or all-linear
  std::vector<std::string> modules{};  ///< modules trained as a whole besides adapters: suffixes of their names
  std::vector<std::string> frozen{};   ///< frozen parameters: whole words of names: "embed_tokens", "layers.0"
  unit::Parameter::Packing packing{};  ///< of the blocks' frozen matrices, beside adapters
  std::string file{};                  ///< peft's, which says targets and modules; empty: options say them

  bool adapts() const { return rank > 0; }
  double scale() const;
};

/// The parameters of a unit, each followed by its adapter if it gets one, each frozen or not: a product's lora_A is
/// initialized uniformly within 1 / sqrt(its columns), lora_B with zeros.
std::vector<unit::Parameter> adapted(std::vector<unit::Parameter> parameters, const Adaptation& adaptation);

/// Throws zs::Error, with the nearest name, if a pattern matches nothing in the model, if it asks for an adapter that
/// zs does not support, and if nothing remains to be trained.
void require_matches(const unit::Units& units, const Adaptation& adaptation);

/// "model.layers.0.mlp.up_proj" for "model.layers.0.mlp.up_proj.weight".
std::string module_of(const std::string& parameter);

/// Suffixes of names that match exactly the modules with adapters, in peft's format: "q_proj", or the whole name if
/// another module has the same suffix.
std::vector<std::string> target_modules(const unit::Units& units);

}  // namespace zs::model
