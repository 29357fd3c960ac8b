// SPDX-License-Identifier: Apache-2.0
// Text as a data set: files and folders of any supported form, their tokens, their parts.
#pragma once
#include <optional>
#include <string>

#include "chat/template.hpp"
#include "data/dataset.hpp"
#include "data/packing.hpp"

namespace zs::data {

struct Text {
  std::string path;
  std::string tokenizer{};      ///< its path; "": bytes are tokens
  std::string text_key{};       ///< as in token::DocumentReader
  std::int64_t vocabulary = 0;  ///< of the model: tokens are below it
  std::int64_t length = 0;      ///< tokens in a sample
  double percentage = 100;      ///< of each part, its first tokens
  std::int64_t most = 0;        ///< tokens of the training part; 0: all
  HeldOut held_out{};
  Packing packing = Packing::whole;
  TooLong too_long = TooLong::split;
  std::optional<chat::LossOn> loss_on{};  ///< for conversations; none: all of their tokens, or as a file's marks say
};

/// Opens a token file (*.bin) or a folder of them (train.bin, val.bin, test.bin), or text: a file, a file of JSON
/// Lines, or a folder as token::divisions() reads it, each optionally compressed. Lines of JSON with conversations
/// become text by the tokenizer's chat template. Throws zs::Error, located, if it cannot be read, if it has a token
/// outside the vocabulary, if parts are too small, and if packing needs an end-of-text token and there is none.
Split text(const Text& text);

}  // namespace zs::data
