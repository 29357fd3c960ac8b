// SPDX-License-Identifier: Apache-2.0
// In place of token/sentencepiece.cpp, for programs with Debian's LibTorch: that one needs libprotobuf, and Debian's
// libsentencepiece offers another version of the same names, which takes its place and crashes it at the start.
#include "base/error.hpp"
#include "token/tokenizer.hpp"

namespace zs::token {

std::unique_ptr<Tokenizer> open_sentencepiece(const std::string& path) {
  throw Error(
      path, 0,
      "SentencePiece models cannot be read together with Debian's LibTorch: make a token file with zs-tokenize first");
}

}  // namespace zs::token
