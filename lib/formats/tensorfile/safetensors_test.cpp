// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/safetensors.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tensorfile/folder_test.hpp"

namespace zs::tensorfile {
namespace {

std::string with_header(const std::string& header, const std::string& data, std::uint64_t claimed = 0) {
  const std::uint64_t size = claimed ? claimed : header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + data;
}

TEST_CASE("safetensors: the bytes of a small file, as the format has them") {
  const Folder folder;
  const std::string path = folder.file("a.safetensors");
  const std::vector<float> two = {1, 2};
  write_safetensors(path, {{"b", make_tensor(Dtype::u8, {3}, Storage::borrow("xyz"))},
                           {"c", borrow_f32({2, 1}, two)},
                           {"a", borrow_f32({}, std::span(two).first(1))}});
  std::string header =
      "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
      "\"c\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[4,12]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[12,15]}}";
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::string floats(reinterpret_cast<const char*>(two.data()), 8);
  CHECK(slurp(path) == with_header(header, floats.substr(0, 4) + floats + "xyz"));
}

TEST_CASE("safetensors: every type survives; a strided view is written as its elements") {
  const Folder folder;
  const std::string path = folder.file("a.safetensors");
  NamedTensors tensors;
  for (int i = 0; i < kDtypeCount; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    if (dtype != Dtype::c128) tensors.emplace_back(name_of(dtype), any_tensor(dtype, {2, 3}, 5));
  }
  Tensor turned = any_tensor(Dtype::f32, {2, 3}, 5);
  turned.shape = {3, 2};
  turned.strides = {1, 3};
  tensors.emplace_back("turned", turned);
  tensors.emplace_back("empty", any_tensor(Dtype::f32, {0, 3}, 5));
  write_safetensors(path, tensors, {});
  const Safetensors back = read_safetensors(path);
  CHECK(back.metadata.empty());
  REQUIRE(back.tensors.size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const auto same_name = [&name = name](const auto& named) { return named.first == name; };
    const auto found = std::find_if(back.tensors.begin(), back.tensors.end(), same_name);
    REQUIRE(found != back.tensors.end());
    CHECK(found->second.dtype == tensor.dtype);
    CHECK(found->second.shape == tensor.shape);
    CHECK(raw(found->second) == raw(tensor));
    CHECK_FALSE(found->second.storage->verify());
  }
}

TEST_CASE("safetensors: every rule of the format is checked, with the tensor's name") {
  const Folder folder;
  const std::string path = folder.file("a.safetensors");
  const auto read = [&](const std::string& bytes) {
    spill(path, bytes);
    const std::string error = error_of([&] { read_safetensors(path); });
    return error.starts_with(path + ": ") ? error.substr(path.size() + 2) : error;
  };
  const auto tensor = [](const std::string& type, const std::string& shape, const std::string& offsets) {
    return "{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
  };
  const std::string a = "{\"a\":" + tensor("F32", "[2]", "[0,8]");
  const std::string eight = "12345678";
  CHECK(read(with_header(a + "}", eight)) == "no error");
  CHECK(read(with_header(a + "}   ", eight)) == "no error");
  CHECK(read("1234567") == "is not a safetensors file: shorter than 8 bytes");
  CHECK(read(with_header(a + "}", eight, 100000001)) == "is not a safetensors file: its header would exceed 100 MB");
  CHECK(read(with_header(a + "}", "", 60)) == "is cut short: a header of 60 bytes in a file of 62");
  CHECK(read(with_header(" " + a + "}", eight)) == "is not a safetensors file: its header does not begin with '{'");
  CHECK(read(with_header(a, eight)) == "malformed header at byte 62");
  CHECK(read(with_header("{\"\xFF\":1}", "")) == "malformed header at byte 11");
  CHECK(read(with_header(a + ",\"a\":" + tensor("F32", "[2]", "[0,8]") + "}", eight)) ==
        "a: stands twice in the header");
  CHECK(read(with_header("{\"a\":" + tensor("F33", "[2]", "[0,8]") + "}", eight)) == "a: unknown type F33");
  CHECK(read(with_header("{\"a\":" + tensor("F32", "[3]", "[0,8]") + "}", eight)) ==
        "a: shape [3] of F32 needs 12 bytes, has 8");
  CHECK(read(with_header("{\"a\":" + tensor("F32", "[-2]", "[0,8]") + "}", eight)) == "a: malformed header: no shape");
  CHECK(read(with_header("{\"a\":" + tensor("F32", "[2.0]", "[0,8]") + "}", eight)) == "a: malformed header: no shape");
  CHECK(read(with_header("{\"a\":" + tensor("F32", "[2]", "[8,0]") + "}", eight)) ==
        "a: malformed header: no data_offsets");
  CHECK(read(with_header("{\"a\":" + tensor("F32", "[9223372036854775807,3]", "[0,8]") + "}", eight)) ==
        "a: shape [9223372036854775807,3] is too large");
  CHECK(read(with_header("{\"a\":1e999}", "")) == "malformed header: a number out of range");
  CHECK(read(with_header("{\"a\":7}", "")) == "a: malformed header: expected an object");
  CHECK(read(with_header("{\"__metadata__\":{\"k\":1}}", "")) == "malformed header: __metadata__ k is not text");
  CHECK(read(with_header(a + "}", "1234")) == "a: is cut short: its data ends at 8 of 4");
  CHECK(read(with_header(a + "}", eight + "9")) == "1 bytes at the end belong to no tensor");
  CHECK(read(with_header(a + ",\"b\":" + tensor("U8", "[1]", "[9,10]") + "}", eight + "90")) ==
        "b: its data begins at 9, expected 8");
  CHECK(read(with_header(a + ",\"b\":" + tensor("U8", "[1]", "[7,8]") + "}", eight)) ==
        "b: its data begins at 7, expected 8");
}

TEST_CASE("safetensors: a flipped bit or a cut is an Error or another value, never a crash") {
  const Folder folder;
  const std::string path = folder.file("a.safetensors");
  write_safetensors(path, {{"a", any_tensor(Dtype::f32, {2, 3}, 1)}, {"b", any_tensor(Dtype::boolean, {5}, 2)}});
  const std::string sound = slurp(path);
  int errors = 0;
  const auto attempt = [&](const std::string& bytes) {
    spill(path, bytes);
    try {
      for (const auto& [name, tensor] : read_safetensors(path).tensors) raw(tensor);
    } catch (const Error& error) {
      ++errors;
      CHECK(std::string(error.what()).starts_with(path + ": "));
    }
  };
  for (std::size_t i = 0; i < sound.size() * 8; ++i) {
    std::string damaged = sound;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ 1 << i % 8);
    attempt(damaged);
  }
  CHECK(errors > 500);
  errors = 0;
  for (std::size_t size = 0; size < sound.size(); ++size) attempt(sound.substr(0, size));
  CHECK(errors == static_cast<int>(sound.size()));
}

TEST_CASE("safetensors: what could not be read back is not written") {
  const Folder folder;
  const std::string path = folder.file("a.safetensors");
  const Tensor tensor = any_tensor(Dtype::f32, {2}, 1);
  const auto write = [&](const NamedTensors& tensors) { return error_of([&] { write_safetensors(path, tensors); }); };
  CHECK(write({{"a", tensor}, {"a", tensor}}) == path + ": a: two tensors of one name");
  CHECK(write({{"__metadata__", tensor}}) == path + ": __metadata__: two tensors of one name");
  CHECK(write({{"\xFF", tensor}}) == path + ": names and metadata must be UTF-8");
  CHECK(write({{"z", any_tensor(Dtype::c128, {1}, 1)}}) == path + ": z: safetensors has no type c128");
  CHECK_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace zs::tensorfile
