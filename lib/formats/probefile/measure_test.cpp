// SPDX-License-Identifier: Apache-2.0
// Digests, squares and sketches beside share/probe/zs_probe/sketch.py's definition in Python's integers and floats.
#include "probefile/measure.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace zs::probefile {
namespace {

using Json = nlohmann::json;

std::string_view bytes(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

Json measured(std::span<const float> values, std::int64_t begin, std::int64_t total, int threads = 1) {
  return Json::parse(rows(std::vector<Held>{{"param/w", {total}, begin, bytes(values)}}, threads));
}

/// The bits of a row's sketch, and its digest.
struct Sums {
  std::uint64_t digest = 0;
  double squares = 0;
  std::vector<double> sketch = std::vector<double>(128);
  void add(const Json& row) {
    digest += std::stoull(row.at("digest").get<std::string>(), nullptr, 16);
    squares += row.at("squares").get<double>();
    const std::string numbers = from_base64(row.at("sketch").get<std::string>());
    REQUIRE(numbers.size() == sketch.size() * sizeof(double));
    for (std::size_t i = 0; i < sketch.size(); ++i) {
      double number = 0;
      std::memcpy(&number, numbers.data() + i * sizeof number, sizeof number);
      sketch[i] += number;
    }
  }
  bool operator==(const Sums&) const = default;
};

}  // namespace

TEST_CASE("recording: digest, squares and sketch have zs_probe's bits") {
  std::vector<float> values(40);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(static_cast<int>(i * 7 % 11) - 5) / 4;
  const Json whole = measured(values, 0, 40);
  CHECK(whole["digest"] == "247ec41facc00000");
  CHECK(whole["squares"] == 25.875);
  CHECK(whole["sketch"] ==
        "AAAAAAAA+L8AAAAAAADgvwAAAAAAAPg/"
        "AAAAAAAA4D8AAAAAAAAUQAAAAAAAAAzAAAAAAAAAFEAAAAAAAAAEwAAAAAAAAATAAAAAAAAA8D8AAAAAAAAE"
        "wAAAAAAAAAxAAAAAAAAAAMAAAAAAAAAMwAAAAAAAAPg/AAAAAAAAJcA=");
  const Json part = measured(std::span(values).first(19), 3, 40);
  CHECK(part["digest"] == "11719691acc00000");
  CHECK(part["count"] == 19);
  CHECK(part["sketch"] ==
        "AAAAAAAA+L8AAAAAAAAUwAAAAAAAABDAAAAAAAAA8D8AAAAAAAD4PwAAAAAAAADAAAAAAAAAFkAAAAAAAAD4PwAAAAAAAPC/"
        "AAAAAAAA8L8AAAAAAADw"
        "vwAAAAAAAPA/AAAAAAAA8D8AAAAAAADwPwAAAAAAAPC/AAAAAAAA8L8=");
  CHECK(measured(values, 65516, 70000)["digest"] == "738746eb2c800000");  // over the end of a row
  const std::vector<float> odd = {1, -2.5, 0, -0.0F, 3e-45F, std::numeric_limits<float>::infinity()};
  CHECK(measured(odd, 0, 6)["digest"] == "74b3cd0cb98f5bfe");
  CHECK(measured(odd, 0, 6)["squares"] == "inf");
  CHECK(measured(odd, 65533, 70000)["digest"] == "4898e58e144ac4ee");
}

TEST_CASE("recording: measures add up over parts, whatever the threads, and see an order and a sign") {
  std::vector<float> values(1 << 21);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 977) / 8;  // sums are exact
  const std::int64_t total = std::ssize(values);
  const std::span<const float> span(values);
  Sums whole, parts;
  whole.add(measured(values, 0, total));
  for (const auto& [begin, end] : {std::pair{0, 70001}, {70001, 70002}, {70002, 1500000}, {1500000, 1 << 21}})
    parts.add(measured(span.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)), begin,
                       total, 3));
  CHECK(parts == whole);
  CHECK(measured(span.first(0), 0, total)["digest"] == "0000000000000000");
  std::swap(values[3], values[4]);
  Sums swapped;
  swapped.add(measured(values, 0, total));
  CHECK(swapped.digest != whole.digest);
  std::swap(values[3], values[4]);
  values[0] = -0.0F;
  Sums turned;
  turned.add(measured(values, 0, total));
  CHECK(turned.digest != whole.digest);
  CHECK(turned.sketch == whole.sketch);
}

TEST_CASE("recording: rows of several types and places in one list") {
  const std::vector<float> single = {1, 2};
  const std::vector<std::uint16_t> half = {0x3f80, 0x4000};  // bfloat16: the same
  const std::vector<Held> parts = {
      {"param/a", {2}, 0, bytes(single)},
      {"model/a", {2}, 0, {reinterpret_cast<const char*>(half.data()), 4}, tensorfile::Dtype::bf16},
      {"a", {2}, 0, bytes(single), tensorfile::Dtype::f32, 3, 1}};
  const Json made = Json::parse("[" + rows(parts, 1) + "]");
  CHECK(made[1]["dtype"] == "BF16");
  CHECK(made[0]["sketch"] == made[1]["sketch"]);
  CHECK(made[0]["digest"] != made[1]["digest"]);
  CHECK(made[0]["digest"] == made[2]["digest"]);
  CHECK(made[2]["micro"] == 3);
  CHECK(made[2]["by"] == 1);
  CHECK_FALSE(made[0].contains("micro"));
  CHECK(rows({}, 1).empty());
}

TEST_CASE("recording: a digest of each sample over a micro-batch's tensors, as zs_probe makes it") {
  const std::vector<std::int64_t> tokens = {1, 2, 3, -100, 5, 6}, labels = {7, 8};
  const std::vector<Samples> tensors = {{tokens.data(), tensorfile::Dtype::i64, 3},
                                        {labels.data(), tensorfile::Dtype::i64, 1}};
  CHECK(sample_digests(2, tensors) == std::vector<std::uint64_t>{0xfcf76e90b9402415, 0x2ccf2ad221ee615f});
}

TEST_CASE("recording: parameters are moved by a unit in the last place as zs_probe moves them") {
  std::vector<float> values = {1, -0.0F, 0.5, -3};
  perturb(values, 2, 1, "h.w");
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  CHECK(bits == std::vector<std::uint32_t>{0x3f800001, 0x80000000, 0x3f000001, 0xc03fffff});
}

TEST_CASE("recording: a norm that is not finite is nan or inf, whatever its sign bit") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [value, text] :
       {std::pair{nan, "nan"}, {-nan, "nan"}, {std::numeric_limits<float>::max(), "finite"}}) {
    const std::vector<float> values = {1, value};
    const Json squares = measured(values, 0, 2)["squares"];
    CHECK((squares.is_string() ? squares.get<std::string>() : "finite") == text);
  }
}

}  // namespace zs::probefile
