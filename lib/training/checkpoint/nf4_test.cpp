// SPDX-License-Identifier: Apache-2.0
// Against what bitsandbytes made of the same matrices: tests/peers/nf4.py writes tests/data/nf4.
#include "checkpoint/nf4.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace zs::checkpoint {
namespace {

using device::Nf4;

const std::string kMatrices = "tests/data/nf4/matrices.safetensors";

std::string raw(const tensorfile::Tensor& tensor) {
  std::string bytes(tensor.byte_count(), '\0');
  tensorfile::read_raw(tensor, bytes);
  return bytes;
}

template <typename T>
std::string dequantized(const std::vector<std::byte>& bytes, const Nf4& form) {
  std::vector<T> numbers(static_cast<std::size_t>(form.numel));
  device::from_nf4(device::view(bytes.data(), std::ssize(bytes)), form, device::view(numbers.data(), form.numel));
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

}  // namespace

TEST_CASE("nf4: quantized and dequantized matrices have bitsandbytes' bits, and so have those of its files") {
  const tensorfile::StateDict file = tensorfile::open_state_dict(kMatrices);
  int matrices = 0;
  for (const auto& entry : file.entries()) {
    if (entry.name.find('.') != std::string::npos) continue;
    ++matrices;
    CAPTURE(entry.name);
    std::vector<float> values(static_cast<std::size_t>(entry.tensor.count()));
    tensorfile::read_f32(entry.tensor, values);
    for (const bool nested : {false, true}) {
      CAPTURE(nested);
      const std::string name = entry.name + (nested ? ".double" : ".single");
      std::set<std::string> taken;
      const auto theirs = Nf4Tensor::find(file, name, entry.tensor.shape, taken);
      REQUIRE(theirs);
      CHECK(taken.size() == (nested ? 6 : 4));
      const Nf4 form{entry.tensor.count(), nested};
      REQUIRE(theirs->form().bytes() == form.bytes());
      std::vector<std::byte> bytes(static_cast<std::size_t>(form.bytes())), read(bytes.size());
      device::to_nf4(values, form, bytes);
      theirs->read(read);
      if (nested) {
        // torch.linspace, of which they make the table, has other last bits on other processors.
        const auto at = [&](std::vector<std::byte>& bytes, std::int64_t i) {
          float value;
          std::memcpy(&value, bytes.data() + form.table_at() + 4 * i, sizeof value);
          return value;
        };
        for (std::int64_t i = 0; i < device::kCodedBlock; ++i)
          CHECK(std::fabs(at(bytes, i) - at(read, i)) <= std::fabs(at(read, i)) * 0x1p-22F);
        std::memcpy(bytes.data() + form.table_at(), read.data() + form.table_at(), sizeof(device::CodeTable));
      }
      CHECK((bytes == read));
      CHECK(dequantized<float>(bytes, form) == raw(file.at(name + ".float32")));
      CHECK(dequantized<device::Bfloat16>(bytes, form) == raw(file.at(name + ".bfloat16")));
      std::vector<float> middle(values.size() / 2), whole(values.size());
      theirs->read(std::ssize(middle) / 2, middle);
      theirs->read(0, whole);
      CHECK(std::equal(middle.begin(), middle.end(), whole.begin() + std::ssize(middle) / 2));
    }
  }
  CHECK(matrices == 5);
}

TEST_CASE("nf4: a tensor of another shape, or without its parts, is refused by name") {
  const tensorfile::StateDict file = tensorfile::open_state_dict(kMatrices);
  std::set<std::string> taken;
  CHECK(!Nf4Tensor::find(file, "normal", {65, 256}, taken));
  CHECK_THROWS_WITH_AS(Nf4Tensor::find(file, "normal.single", {256, 65}, taken),
                       (kMatrices + ": normal.single has the shape [65,256], the model [256, 65]").c_str(), Error);
  tensorfile::StateDict torn(kMatrices);
  for (const auto& entry : file.entries()) {
    if (entry.name != "normal.double.nested_absmax") torn.add(entry.name, entry.tensor);
  }
  CHECK_THROWS_AS(Nf4Tensor::find(torn, "normal.double", {65, 256}, taken), Error);
}

TEST_CASE("nf4: a matrix has 4.5 bits a number, with nested scales 4.127") {
  constexpr double kNumbers = 4096 * 4096;
  CHECK(static_cast<double>(Nf4{4096 * 4096, false}.bytes()) * 8 / kNumbers == doctest::Approx(4.5));
  CHECK(static_cast<double>(Nf4{4096 * 4096, true}.bytes()) * 8 / kNumbers == doctest::Approx(4.127).epsilon(2e-4));
}

}  // namespace zs::checkpoint
