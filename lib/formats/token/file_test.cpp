// SPDX-License-Identifier: Apache-2.0
#include "token/file.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"

namespace zs::token {

TEST_CASE("token file: what is written is read, one by one and in rows, in every layout") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.bin");
  for (const auto& [layout, vocabulary] : {std::pair{Layout::llmc, Id{65536}},
                                           {Layout::llmc, Id{65537}},
                                           {Layout::llmc, Id{128256}},
                                           {Layout::nanogpt, Id{65536}}}) {
    TokenWriter writer(path, layout, vocabulary);
    writer.write({0, 1, 65535});
    writer.write({vocabulary - 1});
    writer.commit();
    const TokenFile file(path, vocabulary);
    CHECK(file.layout() == layout);
    CHECK(file.width() == (vocabulary > 65536 ? 4 : 2));
    REQUIRE(file.count() == 4);
    CHECK(file.id(2) == 65535);
    CHECK(file.largest() == vocabulary - 1);
    std::vector<std::int64_t> row(3);
    file.copy(1, 3, row.data());
    CHECK(row == std::vector<std::int64_t>{1, 65535, vocabulary - 1});
    CHECK_THROWS_AS(TokenFile(path, vocabulary - 1), Error);
  }
}

TEST_CASE("token file: Megatron's of more than 16 bits, by the index beside it, is refused") {
  const TemporaryFolder folder;
  write_file(folder.file("x.bin"), std::string("\1\0\0\0\2\0\0\0", 8));
  const std::string index = std::string("MMIDIDX\0\0\1\0\0\0\0\0\0\0", 17);
  write_file(folder.file("x.idx"), index + '\4');
  CHECK_THROWS_WITH_AS(TokenFile(folder.file("x.bin")), doctest::Contains("ids of more than 16 bits"), Error);
  write_file(folder.file("x.idx"), index + '\10');  // uint16
  CHECK(TokenFile(folder.file("x.bin")).count() == 4);
}

TEST_CASE("token file: a writer that is not done leaves nothing, and neither does one without ids") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.bin");
  TokenWriter(path, Layout::llmc, 10).write({1});
  CHECK_THROWS_AS(TokenFile{path}, Error);
  CHECK_THROWS_AS(TokenWriter(path, Layout::nanogpt, 10).commit(), Error);
  CHECK_THROWS_AS(TokenFile{path}, Error);
  CHECK_THROWS_AS(TokenWriter(path, Layout::nanogpt, 65537), Error);
}

}  // namespace zs::token
