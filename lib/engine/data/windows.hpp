// SPDX-License-Identifier: Apache-2.0
// Samples of text: windows over tokens.
#pragma once
#include <memory>

#include "data/dataset.hpp"
#include "data/packing.hpp"
#include "data/tokens.hpp"

namespace zs::data {

/// The tokens of each part of a data set; null parts are taken from the end of the training part.
struct Parts {
  std::shared_ptr<const Tokens> training, validation{}, test{};
};

/// How tokens become windows. Unless documents are joined (Packing::whole), the `separator` token marks their ends: it
/// is the last target of a document, and no input, so that a document of n tokens has n inputs, and none of its targets
/// belongs to another document; if tokens have marks, these define where conversations begin, and the last token of one
/// is its last target. A document with more inputs than a window continues in another window as if it began there, or
/// loses its end, or is left out. The rest of a window is padded with the separator.
struct Cutting {
  std::int64_t length;  ///< inputs of a window
  Packing packing = Packing::whole;
  std::int64_t separator = 0;
  TooLong too_long = TooLong::split;  ///< unless documents are joined
};

/// Windows of `length` inputs and, one token later, as many targets, without overlap of inputs; for a missing part the
/// last windows of training are held out. With packing `none` a window has tokens of one document, with `masked` of as
/// many as fit, by pack(). Sets neither path nor notes, except a note about padding. Throws zs::Error, with the tokens'
/// path, if a part does not fill one window.
Split windows(const Parts& parts, const Cutting& cutting, const HeldOut& held_out);

}  // namespace zs::data
