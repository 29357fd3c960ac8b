// SPDX-License-Identifier: Apache-2.0
// Replaces token/sentencepiece.cpp in programs with Debian's LibTorch. That file needs libprotobuf; Debian's
// libsentencepiece exports another version of the same names, which overrides it and crashes it at the start.
#include "base/error.hpp"
#include "token/tokenizer.hpp"

namespace zs::token {

std::unique_ptr<Tokenizer> open_sentencepiece(const std::string& path) {
  throw Error(
      path, 0,
      "SentencePiece models cannot be read together with Debian's LibTorch: make a token file with zs-tokenize first");
}

}  // namespace zs::token
