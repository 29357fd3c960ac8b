// SPDX-License-Identifier: Apache-2.0
#include "data/token_file.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "token/file.hpp"

namespace zs::data {

TEST_CASE("token file: tokens as the file has them, a share of them, and a checksum of what is taken") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.bin");
  token::TokenWriter writer(path, token::Layout::nanogpt, 100);
  writer.write({5, 6, 7, 8, 9, 10, 11, 12, 13, 99});
  writer.commit();
  const TokenFile whole(path, 100, 100, 0), half(path, 100, 50, 0), two(path, 100, 50, 2);
  CHECK(whole.count() == 10);
  CHECK(half.count() == 5);
  CHECK(two.count() == 2);
  CHECK(whole.sha256() != half.sha256());
  CHECK(half.sha256() == TokenFile(path, 200, 100, 5).sha256());
  std::vector<std::int64_t> row(3);
  whole.copy(7, row);
  CHECK(row == std::vector<std::int64_t>{12, 13, 99});
  CHECK_THROWS_WITH_AS(TokenFile(path, 99, 100, 0), doctest::Contains("holds the id 99 at 9"), Error);
  CHECK_THROWS_AS(TokenFile(path, 100, 1, 0), Error);
  CHECK(is_token_file(path));
}

}  // namespace zs::data
