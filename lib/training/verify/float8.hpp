// SPDX-License-Identifier: Apache-2.0
// Weights that gathers bring as the 8 bits of products, for the reference: written only from the definition.
#pragma once
#include <vector>

#include "unit/unit.hpp"

namespace zs::verify {

/// Replaces each product's weights x in a unit's tensors on the host by q / s, where q is x s in E4M3, s = 448 / the
/// largest magnitude of all weights that share the scale; if |q| is 448, by that magnitude. In the tensors' type.
void as_float8(const std::vector<unit::Parameter>& parameters, std::vector<at::Tensor>& unit);

}  // namespace zs::verify
