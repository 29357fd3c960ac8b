// SPDX-License-Identifier: Apache-2.0
// The layers of a model, derived from the names of its tensors: a block, an embedding, a head.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace zs::gradient {

struct Layer {
  std::string name;                  ///< "h.0", "wte", "encoder.layer.3"
  bool block = false;                ///< one of several equal ones: its name ends in a number
  std::vector<std::size_t> tensors;  ///< indices among the names
};

/// Tensors belong to one layer if their names are equal up to the first part that is a number ("h.0" of
/// "transformer.h.0.attn.c_proj.weight"), or without a number in their first part ("wte" of "transformer.wte.weight").
/// A first part that all blocks share is removed. In order of first appearance.
std::vector<Layer> layers(const std::vector<std::string>& names);

}  // namespace zs::gradient
