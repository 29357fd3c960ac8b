// SPDX-License-Identifier: Apache-2.0
// Values as texts: other values have other texts and other names.
#include "checkpoints/fact.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace zs::checkpoints {
namespace {

using tensorfile::Dict;
using tensorfile::Dtype;
using tensorfile::Value;

template <class T>
Value number(Dtype dtype, T value, tensorfile::Shape shape = {}) {
  return make_tensor(dtype, std::move(shape),
                     tensorfile::Storage::own({reinterpret_cast<const char*>(&value), sizeof value}));
}

TEST_CASE("fact: a number in a tensor keeps its type, its shape and each bit") {
  CHECK(text_of(number(Dtype::i32, std::int32_t{16777217})) == "i32[] 16777217");
  CHECK(text_of(number(Dtype::u32, std::uint32_t{4294967295U})) == "u32[] 4294967295");
  CHECK(text_of(number(Dtype::i64, std::int64_t{9007199254740993})) == "i64[] 9007199254740993");
  CHECK(text_of(number(Dtype::i64, std::numeric_limits<std::int64_t>::min())) == "i64[] -9223372036854775808");
  CHECK(text_of(number(Dtype::u64, std::uint64_t{9223372036854775809U})) == "u64[] 9223372036854775809");
  CHECK(text_of(number(Dtype::i8, std::int8_t{-3})) == "i8[] -3");
  CHECK(text_of(number(Dtype::boolean, std::uint8_t{1})) == "bool[] 1");
  CHECK(text_of(number(Dtype::f64, 0.1)) == "f64[] 0.1");
  CHECK(text_of(number(Dtype::f32, 3.0F)) == "f32[] 3");
  CHECK(text_of(number(Dtype::f32, 3.0F, {1})) == "f32[1] 3");
  CHECK(text_of(number(Dtype::f32, -0.0F)) != text_of(number(Dtype::f32, 0.0F)));
  const Value step = number(Dtype::i32, std::int32_t{16777217});
  CHECK(number_of(&step) == 16777217);
}

TEST_CASE("fact: other texts have other spellings") {
  CHECK(text_of(Value("a\\n")) != text_of(Value("a\n")));
  CHECK(text_of(tensorfile::List{{"a", "b"}}) != text_of(tensorfile::List{{"a', 'b"}}));
  CHECK(text_of(Value("plain")) == "'plain'");
}

TEST_CASE("fact: no key hides another, in any order of the keys") {
  const auto facts = [](const Dict& dict) {
    State state;
    add_facts(state, "training", dict);
    return state.facts;
  };
  const auto both = [&](const tensorfile::Item& x, const tensorfile::Item& y) {
    CHECK(facts(Dict{{x, y}}) == facts(Dict{{y, x}}));
    CHECK(facts(Dict{{x, y}}).size() == 2);
    return facts(Dict{{x, y}});
  };
  using Facts = std::map<std::string, std::string>;
  CHECK(both({1, 2}, {"1", 3}) == Facts{{"training.1", "2"}, {"training.'1'", "3"}});
  CHECK(both({1, 3}, {"1", 2}) == Facts{{"training.1", "3"}, {"training.'1'", "2"}});
  CHECK(both({"a", Dict{{{"b", 1}}}}, {"a.b", 2}) == Facts{{"training.a.b", "1"}, {"training.'a.b'", "2"}});
  CHECK(both({"x.y", 1}, {"a", 2}) == Facts{{"training.x.y", "1"}, {"training.a", "2"}});
  State state;
  add_facts(state, "random", 1), add_facts(state, "random", 2), add_facts(state, "random", 2);
  CHECK(state.facts == Facts{{"random", "1"}, {"random'", "2"}, {"random''", "2"}});
}

}  // namespace
}  // namespace zs::checkpoints
