// SPDX-License-Identifier: Apache-2.0
// Samples of text: windows over tokens.
#pragma once
#include <memory>
#include <optional>

#include "data/dataset.hpp"
#include "data/tokens.hpp"

namespace zs::data {

/// The tokens of each part of a data set; those that are null are taken from the end of the training part.
struct Parts {
  std::shared_ptr<const Tokens> training, validation{}, test{};
};

/// Windows of `length` inputs and, one token later, as many targets, cut without overlap of inputs; of a part that is
/// not there the last windows of training are held out. With a `separator`, the token between documents, a window
/// begins with each document and has tokens of no other: its end is padded with the separator, and a longer document
/// goes on in the next window. Sets neither path nor notes but, with a separator, one of what is padded. Throws
/// zs::Error, naming the tokens' path, where a part does not make one window.
Split windows(const Parts& parts, std::int64_t length, const HeldOut& held_out,
              std::optional<std::int64_t> separator = {});

}  // namespace zs::data
