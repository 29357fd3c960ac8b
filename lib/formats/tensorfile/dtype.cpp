// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/dtype.hpp"

#include <array>

namespace zs::tensorfile {
namespace {

struct Row {
  std::size_t size;
  std::string_view name, safetensors, torch, storage;
};

// In the order of the enumeration.
constexpr std::array<Row, kDtypeCount> kRows = {{
    {1, "bool", "BOOL", "bool", "BoolStorage"},
    {1, "u8", "U8", "uint8", "ByteStorage"},
    {1, "i8", "I8", "int8", "CharStorage"},
    {2, "u16", "U16", "uint16", ""},
    {2, "i16", "I16", "int16", "ShortStorage"},
    {4, "u32", "U32", "uint32", ""},
    {4, "i32", "I32", "int32", "IntStorage"},
    {8, "u64", "U64", "uint64", ""},
    {8, "i64", "I64", "int64", "LongStorage"},
    {1, "f8_e4m3", "F8_E4M3", "float8_e4m3fn", ""},
    {1, "f8_e5m2", "F8_E5M2", "float8_e5m2", ""},
    {2, "f16", "F16", "float16", "HalfStorage"},
    {2, "bf16", "BF16", "bfloat16", "BFloat16Storage"},
    {4, "f32", "F32", "float32", "FloatStorage"},
    {8, "f64", "F64", "float64", "DoubleStorage"},
    {8, "c64", "C64", "complex64", "ComplexFloatStorage"},
    {16, "c128", "", "complex128", "ComplexDoubleStorage"},
}};

const Row& row(Dtype dtype) { return kRows[static_cast<std::size_t>(dtype)]; }

std::optional<Dtype> find(std::string_view Row::*field, std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].*field == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

}  // namespace

std::size_t size_of(Dtype dtype) { return row(dtype).size; }
std::string_view name_of(Dtype dtype) { return row(dtype).name; }
std::string_view safetensors_name(Dtype dtype) { return row(dtype).safetensors; }
std::optional<Dtype> from_safetensors_name(std::string_view name) { return find(&Row::safetensors, name); }
std::string_view torch_name(Dtype dtype) { return row(dtype).torch; }
std::optional<Dtype> from_torch_name(std::string_view name) { return find(&Row::torch, name); }
std::string_view storage_class(Dtype dtype) { return row(dtype).storage; }
std::optional<Dtype> from_storage_class(std::string_view name) { return find(&Row::storage, name); }

}  // namespace zs::tensorfile
