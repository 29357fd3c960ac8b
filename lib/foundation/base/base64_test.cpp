// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"

namespace zs {

TEST_CASE("base64: the vectors of RFC 4648, both ways, and what is none") {
  for (const auto& [bytes, text] : {std::pair{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"}}) {
    CHECK(to_base64(bytes) == text);
    CHECK(from_base64(text) == bytes);
  }
  const std::string bytes = from_base64(to_base64(std::string("\0\xff\x80\n", 4)));
  CHECK(bytes == std::string("\0\xff\x80\n", 4));
  for (const char* const none : {"Zg", "Zm9", "Z!9v", "Zm9vY"}) CHECK_THROWS_AS(from_base64(none), Error);
}

}  // namespace zs
