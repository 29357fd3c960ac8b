// SPDX-License-Identifier: Apache-2.0
// Converts an optimizer's rules to rules of the elementwise kernels (device::Operations::update).
#pragma once
#include <cstdint>

#include "device/operations.hpp"
#include "optimizer/optimizer.hpp"

namespace zs::zero {

/// `update` counts from 1. `decay` false disables weight decay. REQUIRES: not Rule::muon.
device::Rule factors(const optimizer::Settings& settings, optimizer::Rule rule, double learning_rate,
                     std::int64_t update, bool decay);

/// For a matrix under Muon: the step along the orthogonalised direction, adjusted to its shape.
device::Rule matrix_step(const optimizer::Settings& settings, double learning_rate, bool decay, std::int64_t rows,
                         std::int64_t columns);
device::DirectionFactors direction(const optimizer::Settings& settings);

}  // namespace zs::zero
