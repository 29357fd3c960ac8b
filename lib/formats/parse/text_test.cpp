// SPDX-License-Identifier: Apache-2.0
#include "parse/text.hpp"

#include <doctest/doctest.h>

namespace zs::parse {
namespace {

TEST_CASE("number_at takes the number in front and tells whole numbers from others") {
  CHECK(number_at("12, ").text == "12");
  CHECK(number_at("12, ").kind == Kind::integer);
  CHECK(number_at("-1.5e-05x").text == "-1.5e-05");
  CHECK(number_at("1e5").kind == Kind::real);
  CHECK(number_at("1.2.3").text == "1.2");
  CHECK(number_at("3em").text == "3");
  CHECK(number_at("1e+").text == "1");
  CHECK(number_at("nan ").text == "nan");
  CHECK(number_at("-inf,").text == "-inf");
  CHECK(number_at("Infinity").text == "Infinity");
  CHECK(number_at("NaN").kind == Kind::real);
  CHECK(number_at("nano").text.empty());
  CHECK(number_at("information").text.empty());
  CHECK(number_at("-").text.empty());
  CHECK(number_at(".").text.empty());
  CHECK(number_at("").text.empty());
}

TEST_CASE("shifted moves the point digit for digit") {
  CHECK(shifted("135.12", -3) == "0.13512");
  CHECK(shifted("1131", -3) == "1.131");
  CHECK(shifted("0.5", -3) == "0.0005");
  CHECK(shifted("-20.250", -1) == "-2.0250");
  CHECK(shifted("1.5", 3) == "1500");
  CHECK(shifted("0", -3) == "0.000");
  CHECK(shifted("1e5", -3) == "1e2");
  CHECK(shifted("2.5e-05", -3) == "2.5e-8");
  CHECK(shifted("nan", -3) == "nan");
}

TEST_CASE("bytes_of counts in powers of 1024, as PyTorch's tools do") {
  CHECK(bytes_of("1", "GB") == "1073741824");
  CHECK(bytes_of("1.5", "GiB") == "1610612736");
  CHECK(bytes_of("14.96", "GB") == "16063177687");
  CHECK(bytes_of("3", "parsecs").empty());
  CHECK(bytes_of("nan", "GB").empty());
}

TEST_CASE("without_escapes removes colours and titles and keeps the rest") {
  std::string storage;
  CHECK(without_escapes("plain \xe2\x96\x88 text", storage) == "plain \xe2\x96\x88 text");
  CHECK(without_escapes("\x1b[1;32mgreen\x1b[0m", storage) == "green");
  CHECK(without_escapes("a\x1b]0;title\ab", storage) == "ab");
  CHECK(without_escapes("a\x1b", storage) == "a");
  CHECK(without_escapes("a\x1b[12", storage) == "a");
  CHECK(without_escapes(std::string_view("\0\0a 1\0\0"
                                         "2 3\0 b\a",
                                         13),
                        storage) ==
        "a 1\xEF\xBF\xBD"
        "2 3\xEF\xBF\xBD b");
}

TEST_CASE("rank_of knows the prefixes of launchers") {
  CHECK(rank_of("[rank3]: ") == "3");
  CHECK(rank_of("[default12]:") == "12");
  CHECK(rank_of("7: ") == "7");
  CHECK(rank_of("1: [default3]:") == "1003");
  CHECK(rank_of("0: [default3]:") == "3");
  CHECK(rank_of("1: [rank9]: ") == "9");
  CHECK(rank_of("[rank-3]: ").empty());
  CHECK(rank_of("[1,2.5]<stdout>:").empty());
  CHECK(rank_of("[1,-3]<stdout>:").empty());
  CHECK(rank_of("[1,5]<stdout>:") == "5");
  CHECK(rank_of("[2025-06-17 04:25:48,181] [INFO] [logging.py:107:log_dist] [Rank 0] ") == "0");
  CHECK(rank_of("[Rank -1] ").empty());
  CHECK(rank_of("04:25:48 ").empty());
  CHECK(rank_of("").empty());
}

}  // namespace
}  // namespace zs::parse
