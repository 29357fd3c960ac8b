// SPDX-License-Identifier: Apache-2.0
// Samples of text: windows over tokens.
#pragma once
#include <memory>

#include "data/dataset.hpp"
#include "data/packing.hpp"
#include "data/tokens.hpp"

namespace zs::data {

/// The tokens of each part of a data set; those that are null are taken from the end of the training part.
struct Parts {
  std::shared_ptr<const Tokens> training, validation{}, test{};
};

/// How tokens become windows. Unless documents are joined (Packing::whole) the `separator`, the token between them,
/// says where they end: it is the last target of a document, and no input, so that a document of n tokens has n inputs,
/// and none of its targets is of another document; where tokens have marks, these say where conversations begin, and
/// the last token of one is its last target. A document of more inputs than a window goes on in a window as if it began
/// there, or loses its end, or is left out. What is left of a window is padded with the separator.
struct Cutting {
  std::int64_t length;  ///< inputs of a window
  Packing packing = Packing::whole;
  std::int64_t separator = 0;
  TooLong too_long = TooLong::split;  ///< unless documents are joined
};

/// Windows of `length` inputs and, one token later, as many targets, cut without overlap of inputs; of a part that is
/// not there the last windows of training are held out. Of packing `none` a window has tokens of one document, of
/// `masked` of as many as fit, by pack(). Sets neither path nor notes but one of what is padded. Throws zs::Error,
/// naming the tokens' path, where a part does not make one window.
Split windows(const Parts& parts, const Cutting& cutting, const HeldOut& held_out);

}  // namespace zs::data
