// SPDX-License-Identifier: Apache-2.0
#include "compare/tensors.hpp"

#include <doctest/doctest.h>

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

}  // namespace

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

TEST_CASE("tensors: a count of tensors counts tensors, not their parts") {
  const auto part = [](std::int64_t begin, const std::vector<float>& values) { return Part{"m", begin, f32(values)}; };
  const Tensors cut = parts({part(0, {1, 2}), part(2, {3, 4})}, {part(0, {9, 2}), part(2, {9, 4})}, "A", "B", {});
  CHECK(cut.tensors == 1);
  CHECK(cut.tensors_differing == 1);
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
