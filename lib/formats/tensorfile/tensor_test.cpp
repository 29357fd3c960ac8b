// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/tensor.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "tensorfile/folder_test.hpp"

namespace zs::tensorfile {
namespace {

std::vector<float> floats(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.count()));
  read_f32(tensor, values);
  return values;
}

template <class T>
Tensor of(Dtype dtype, const std::vector<T>& values) {
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return make_tensor(dtype, {static_cast<std::int64_t>(values.size())}, Storage::own(bytes));
}

TEST_CASE("tensor: views are read in row-major order whatever their strides") {
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.0F);
  Tensor tensor = borrow_f32({2, 3, 4}, values);
  CHECK(floats(tensor) == values);
  CHECK(tensor.contiguous());
  tensor.shape = {3, 2};
  tensor.strides = {4, 12};
  tensor.offset = 1;
  CHECK_FALSE(tensor.contiguous());
  CHECK(floats(tensor) == std::vector<float>{1, 13, 5, 17, 9, 21});
  tensor.shape = {2, 1, 3};
  tensor.strides = {0, 1000000, 2};  // a repeated row, and a stride that says nothing
  tensor.check();
  CHECK(floats(tensor) == std::vector<float>{1, 3, 5, 1, 3, 5});
  tensor.shape = {};
  tensor.strides = {};
  CHECK(floats(tensor) == std::vector<float>{1});
  tensor.shape = {4, 0};
  tensor.strides = {1, 1};
  CHECK(floats(tensor).empty());
}

TEST_CASE("tensor: a large strided view is what its rows are") {
  std::vector<float> values(std::size_t{600} * 700);
  std::iota(values.begin(), values.end(), 0.0F);
  Tensor tensor = borrow_f32({600, 700}, values);
  tensor.shape = {700, 600};
  tensor.strides = {1, 700};
  const std::vector<float> turned = floats(tensor);
  bool equal = true;
  for (std::size_t i = 0; i < turned.size(); ++i) equal = equal && turned[i] == values[i % 600 * 700 + i / 600];
  CHECK(equal);
}

TEST_CASE("tensor: element types become f32 by value") {
  CHECK(floats(of<std::int64_t>(Dtype::i64, {-3, 16777217})) == std::vector<float>{-3, 16777216});
  CHECK(floats(of<std::uint8_t>(Dtype::u8, {255})) == std::vector<float>{255});
  CHECK(floats(of<std::int8_t>(Dtype::i8, {-128})) == std::vector<float>{-128});
  CHECK(floats(of<char>(Dtype::boolean, {0, 1})) == std::vector<float>{0, 1});
  CHECK(floats(of<double>(Dtype::f64, {0.1})) == std::vector<float>{0.1F});
  CHECK(floats(of<std::uint16_t>(Dtype::f16, {0x3C00, 1})) == std::vector<float>{1, 0x1p-24F});
  CHECK(floats(of<std::uint16_t>(Dtype::bf16, {0x3F81})) == std::vector<float>{1.0078125F});
  CHECK(floats(of<std::uint32_t>(Dtype::u32, {4294967295U})) == std::vector<float>{4294967296.0F});
  std::vector<float> one(1);
  CHECK(error_of([&] { read_f32(of<std::uint64_t>(Dtype::c64, {0}), one); }) ==
        "a tensor of c64 cannot be read as f32");
  CHECK(error_of([&] {
          read_f32(of<float>(Dtype::f32, {1, 2}), one);
        }) == "tensor of shape [2] does not fit 1 elements");
}

TEST_CASE("tensor: views that reach outside of their storage are errors") {
  const std::vector<float> values(6);
  const Tensor sound = borrow_f32({2, 3}, values);
  const auto error = [&](Shape shape, Shape strides, std::int64_t offset) {
    Tensor tensor = sound;
    tensor.shape = std::move(shape);
    tensor.strides = std::move(strides);
    tensor.offset = offset;
    return error_of([&] { tensor.check(); });
  };
  CHECK(error({2, 3}, {3, 1}, 0) == "no error");
  CHECK(error({2, 3}, {3, 1}, 1) == "tensor of shape [2, 3] reaches element 6 of a storage that has 6");
  CHECK(error({2, 3}, {4, 1}, 0) == "tensor of shape [2, 3] reaches element 6 of a storage that has 6");
  CHECK(error({}, {}, 6) == "tensor of shape [] reaches element 6 of a storage that has 6");
  CHECK(error({0}, {1}, 6) == "no error");
  CHECK(error({2}, {-1}, 1) == "tensor has a negative size or stride");
  CHECK(error({-1}, {1}, 0) == "tensor has a negative size or stride");
  CHECK(error({2}, {1}, -1) == "tensor has a negative offset");
  CHECK(error({2, 2}, {1}, 0) == "the tensor's numbers of strides and dimensions differ");
  const std::int64_t huge = std::int64_t{1} << 62;
  CHECK(error({huge, 4}, {0, 0}, 0) == "tensor of shape [4611686018427387904, 4] is too large");
  CHECK(error({huge}, {0}, 0) == "tensor of shape [4611686018427387904] is too large");
  CHECK(error({3}, {huge}, 0) == "tensor of shape [3] is too large");
  CHECK(error_of([&] { borrow_f32({2, 2}, values); }) == "tensor of shape [2, 2] and type f32 needs 16 bytes, has 24");
}

TEST_CASE("storage: a producer that gives too little or too much is an error") {
  const auto give = [](std::size_t size) {
    const StoragePtr storage = Storage::produce(8, [size](const Sink& sink) { sink(std::string(size, 'x')); });
    return error_of([&] { storage->stream([](std::string_view) {}); });
  };
  CHECK(give(8) == "no error");
  CHECK(give(7) == "a tensor gave 7 of its 8 bytes");
  CHECK(give(9) == "a tensor gave more than its 8 bytes");
}

}  // namespace
}  // namespace zs::tensorfile
