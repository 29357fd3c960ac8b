// SPDX-License-Identifier: Apache-2.0
#include "compare/tensors.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>

#include "compare/elements.hpp"

namespace zs::compare {
using tensorfile::Dtype;
using tensorfile::Storage;
using tensorfile::Tensor;

namespace {

template <class T>
Tensor tensor_of(Dtype dtype, const std::vector<T>& values) {
  return tensorfile::make_tensor(
      dtype, {static_cast<std::int64_t>(values.size())},
      Storage::own(std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))));
}
Tensor f32(const std::vector<float>& values) { return tensor_of(Dtype::f32, values); }

Tensors of(const Tensor& a, const Tensor& b, const Tolerance& tolerance = {}) {
  return tensors({{{"w", a}}, {{"w", b}}}, "A", "B", tolerance);
}

}  // namespace

TEST_CASE("tensors: every element is judged, whatever the first one is") {
  std::vector<float> ones(1000, 1), others(1000, 9e9F);
  ones[0] = 0, others[0] = -0.0F;
  const Tensors found = of(f32(ones), f32(others));
  CHECK(found.verdict == Verdict::different);
  CHECK(found.differing == 1000);
  CHECK(found.first->index == 0);
  CHECK(found.first->b_hex == "-0x0p+0");
  CHECK(found.first->ulp == 1);
  // A small first difference accepts nothing after it.
  ones[0] = 1, others[0] = 1 + 1e-6F;
  const Tensors loose = of(f32(ones), f32(others), {1e-4, 1e-4});
  CHECK(loose.verdict == Verdict::different);
  CHECK(loose.first->index == 1);
  CHECK(loose.refused == 999);
  CHECK(loose.differing == 1000);
}

TEST_CASE("tensors: the tolerance holds for every float type, and for no integer") {
  CHECK(of(f32({1}), f32({1.0001F}), {1e-3, 0}).verdict == Verdict::within);
  CHECK(of(tensor_of<double>(Dtype::f64, {1}), tensor_of<double>(Dtype::f64, {1.0001}), {1e-3, 0}).verdict ==
        Verdict::within);
  CHECK(of(tensor_of<std::uint16_t>(Dtype::bf16, {0x3F80}), tensor_of<std::uint16_t>(Dtype::bf16, {0x3F81}), {1e-2, 0})
            .verdict == Verdict::within);
  const Tensors half =
      of(tensor_of<std::uint16_t>(Dtype::f16, {0x3C00}), tensor_of<std::uint16_t>(Dtype::f16, {0x3C02}), {1e-2, 0});
  CHECK(half.verdict == Verdict::within);
  CHECK(half.largest.ulp == 2);
  CHECK(of(tensor_of<std::int64_t>(Dtype::i64, {1}), tensor_of<std::int64_t>(Dtype::i64, {2}), {1, 1}).verdict ==
        Verdict::different);
}

TEST_CASE("tensors: a value that is not finite fails on both sides alike, and another payload differs") {
  const float nan = std::nanf(""), other = std::bit_cast<float>(0x7FC00001U);
  const Tensors same = of(f32({1, nan}), f32({1, nan}));
  CHECK(same.verdict == Verdict::failed);
  CHECK(same.non_finite->index == 1);
  const Tensors payload = of(f32({1, nan}), f32({1, other}), {1, 1});
  CHECK(payload.verdict == Verdict::different);
  CHECK(payload.first->b_hex == "0x7fc00001");
  CHECK(of(f32({INFINITY}), f32({INFINITY})).verdict == Verdict::failed);
}

TEST_CASE("tensors: another name, shape or type is a difference; strides are not") {
  CHECK(tensors({{{"w", f32({1})}}, {{"v", f32({1})}}}, "A", "B", {}).unlike ==
        std::vector<std::string>{"w is missing in B", "v is missing in A"});
  CHECK(of(f32({1}), f32({1, 2})).unlike.front() == "w has the shape [1] in A, [2] in B");
  CHECK(of(f32({1}), tensor_of<std::int32_t>(Dtype::i32, {1})).unlike.front() == "w is of type f32 in A, i32 in B");
  CHECK(tensors({{{"n", "3"}}, {{"n", "4"}}}, "A", "B", {}).unlike.front() == "n is 3 in A, 4 in B");
  Tensor rows = f32({1, 2, 3, 4, 5, 6}), columns = f32({1, 4, 2, 5, 3, 6});
  rows.shape = {2, 3}, rows.strides = {3, 1};
  columns.shape = {2, 3}, columns.strides = {1, 2};
  CHECK(of(rows, columns).verdict == Verdict::exact);
  Tensor changed = f32({1, 4, 2, 5, 3, 7});
  changed.shape = {2, 3}, changed.strides = {1, 2};
  CHECK(of(rows, changed).first->place == "[1, 2]");
  CHECK(of(f32({}), f32({})).verdict == Verdict::failed);  // nothing was compared
}

TEST_CASE("tensors: parts of ranks are compared however they were cut") {
  const auto part = [](std::int64_t begin, const std::vector<float>& values) {
    return Part{"exp_avg.w", begin, f32(values)};
  };
  const std::vector<Part> whole = {part(0, {1, 2, 3, 4, 5})}, cut = {part(0, {1, 2}), part(2, {3, 4, 5})};
  CHECK(parts(whole, cut, "A", "B", {}).verdict == Verdict::exact);
  CHECK(parts(whole, cut, "A", "B", {}).elements == 5);
  CHECK(parts(cut, {part(0, {1, 2, 3}), part(3, {4, 5})}, "A", "B", {}).verdict == Verdict::exact);
  const Tensors differing = parts(cut, {part(0, {1, 2, 3}), part(3, {4, 6})}, "A", "B", {});
  CHECK(differing.first->index == 4);
  CHECK(parts(whole, {part(0, {1, 2})}, "A", "B", {}).unlike.front() ==
        "exp_avg.w from element 2 to 4 is missing in B");
  CHECK(parts({part(1, {2})}, whole, "A", "B", {}).unlike.size() == 2);
  CHECK(parts(whole, {}, "A", "B", {}).verdict == Verdict::different);
}

TEST_CASE("tensors: what a document of one side lacks decides nothing; a count of tensors counts tensors") {
  Contents documents{{{"n", "3"}, {"m", "1"}}, {{"n", "3"}}, true};
  const Tensors found = tensors(documents, "A", "B", {});
  CHECK(found.verdict == Verdict::inconclusive);
  CHECK(found.lacking == std::vector<std::string>{"m is missing in B"});
  documents.b.front().value = "4";
  CHECK(tensors(documents, "A", "B", {}).verdict == Verdict::different);
  Contents weights{{{"w", f32({1})}}, {{"w", f32({1})}}};
  weights.unread_b = {"epoch"};
  CHECK(tensors(weights, "A", "B", {}).verdict == Verdict::inconclusive);
  const auto part = [](std::int64_t begin, const std::vector<float>& values) { return Part{"m", begin, f32(values)}; };
  const Tensors cut = parts({part(0, {1, 2}), part(2, {3, 4})}, {part(0, {9, 2}), part(2, {9, 4})}, "A", "B", {});
  CHECK(cut.tensors == 1);
  CHECK(cut.tensors_differing == 1);  // not one for each part
  const Tensors mixed = tensors({{{"w", f32({1})}, {"step", "3"}}, {{"w", f32({2})}, {"step", "4"}}}, "A", "B", {});
  CHECK(mixed.tensors_differing == 1);  // a counter is no tensor
}

TEST_CASE("elements: all floats of 8 bits have the values that their types give them") {
  std::vector<std::uint8_t> bytes(256);
  for (int i = 0; i < 256; ++i) bytes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i);
  const Tensor e4m3 = tensor_of(Dtype::f8_e4m3, bytes), e5m2 = tensor_of(Dtype::f8_e5m2, bytes);
  CHECK(spelt(e4m3, 0x38).decimal == "1");
  CHECK(spelt(e4m3, 0x7E).decimal == "448");
  CHECK(spelt(e4m3, 0x01).decimal == "0.001953125");
  CHECK(spelt(e4m3, 0xFF).decimal == "nan");
  CHECK(spelt(e5m2, 0x3C).decimal == "1");
  CHECK(spelt(e5m2, 0xFC).decimal == "-inf");
  CHECK(elements(e4m3, e4m3, {}).not_finite == 2);
  CHECK(elements(e5m2, e5m2, {}).not_finite == 8);
}

}  // namespace zs::compare
