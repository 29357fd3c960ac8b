// SPDX-License-Identifier: Apache-2.0
// Samples of text: windows over tokens.
#pragma once
#include <memory>

#include "data/dataset.hpp"
#include "data/tokens.hpp"

namespace zs::data {

/// The tokens of each part of a data set; those that are null are taken from the end of the training part.
struct Parts {
  std::shared_ptr<const Tokens> training, validation{}, test{};
};

/// Windows of `length` + 1 tokens (inputs and, one later, targets) cut without overlap of inputs; of a part that is not
/// there the last windows of training are held out. Sets neither path nor notes. Throws zs::Error, naming the tokens'
/// path, where a part does not make one window.
Split windows(const Parts& parts, std::int64_t length, const HeldOut& held_out);

}  // namespace zs::data
