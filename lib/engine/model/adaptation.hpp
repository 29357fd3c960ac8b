// SPDX-License-Identifier: Apache-2.0
// Which parameters of a model are trained, and what is added to them: frozen ones by pattern, and adapters of low rank
// (LoRA, Hu et al. 2022) with the names, shapes and initial values of peft. The one place that decides it: what it
// writes into unit::Parameter, everyone reads there.
#pragma once
#include <string>
#include <vector>

#include "unit/unit.hpp"

namespace zs::model {

struct Adaptation {
  int rank = 0;                        ///< of adapters; 0: there are none
  double alpha = 8;                    ///< what they add is multiplied with alpha / rank
  bool rank_stabilized = false;        ///< with alpha / sqrt(rank) instead (Kalajdzievski 2023)
  std::vector<std::string> targets{};  ///< products that get one: ends of their modules' names, or all-linear
  std::vector<std::string> modules{};  ///< beside adapters: ends of names of modules that are trained whole
  std::vector<std::string> frozen{};   ///< runs of whole words of parameters' names: "embed_tokens", "layers.0"

  bool adapts() const { return rank > 0; }
  double scale() const;
};

/// The parameters of a unit with adapters behind those that get them, each frozen or not: a product's lora_A begins
/// uniform within 1 / sqrt(its columns), lora_B as zeros.
std::vector<unit::Parameter> adapted(std::vector<unit::Parameter> parameters, const Adaptation& adaptation);

/// Throws zs::Error, naming the nearest, at a pattern that nothing in the model matches, where it asks for an adapter
/// of what zs has none for, and where nothing is left to be trained.
void require_matches(const unit::Units& units, const Adaptation& adaptation);

/// "model.layers.0.mlp.up_proj" of its "model.layers.0.mlp.up_proj.weight".
std::string module_of(const std::string& parameter);

/// The ends of names that stand for the modules with adapters and no others, as peft reads them: "q_proj", or the
/// whole name where another module ends so.
std::vector<std::string> target_modules(const unit::Units& units);

}  // namespace zs::model
