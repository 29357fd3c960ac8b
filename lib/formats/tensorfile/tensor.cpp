// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/tensor.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "tensorfile/dtype.hpp"

namespace zs::tensorfile {
namespace {

// Gives the runs of neighbouring elements in row-major order: each a first element and a length.
template <class Run>
void for_each_run(const Tensor& tensor, Run run) {
  if (tensor.count() == 0) return;
  Shape shape, strides;  // without the dimensions of one element, whose strides say nothing
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] == 1) continue;
    shape.push_back(tensor.shape[d]);
    strides.push_back(tensor.strides[d]);
  }
  // Trailing dimensions that are row-major among themselves make one run.
  std::size_t outer = shape.size();
  std::int64_t length = 1;
  while (outer > 0 && strides[outer - 1] == length) length *= shape[--outer];
  Shape index(outer, 0);
  std::int64_t first = tensor.offset;
  while (true) {
    run(first, length);
    std::size_t d = outer;
    while (true) {  // the next index, as an odometer
      if (d == 0) return;
      --d;
      first += strides[d];
      if (++index[d] < shape[d]) break;
      first -= index[d] * strides[d];
      index[d] = 0;
    }
  }
}

constexpr std::size_t kBlock = 4096;  // elements; the copy that makes them aligned stays in the first cache

template <class T, class Convert>
void in_blocks(std::string_view bytes, float* to, Convert convert) {
  std::array<T, kBlock> block;
  for (std::size_t at = 0; at < bytes.size(); at += kBlock * sizeof(T)) {
    const std::size_t count = std::min(kBlock, (bytes.size() - at) / sizeof(T));
    std::memcpy(block.data(), bytes.data() + at, count * sizeof(T));
    convert(block.data(), to, count);
    to += count;
  }
}

template <class T>
void convert_value(std::string_view bytes, float* to) {
  in_blocks<T>(bytes, to, [](const T* from, float* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(from[i]);
  });
}

void convert_block(Dtype dtype, std::string_view bytes, float* to) {
  using U16 = std::uint16_t;
  switch (dtype) {
    case Dtype::f32:
      if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
      return;
    case Dtype::bf16:
      in_blocks<U16>(bytes, to, [](const U16* from, float* out, std::size_t n) { bf16_to_f32(from, out, n); });
      return;
    case Dtype::f16:
      in_blocks<U16>(bytes, to, [](const U16* from, float* out, std::size_t n) { f16_to_f32(from, out, n); });
      return;
    case Dtype::f64:
      return convert_value<double>(bytes, to);
    case Dtype::i64:
      return convert_value<std::int64_t>(bytes, to);
    case Dtype::u64:
      return convert_value<std::uint64_t>(bytes, to);
    case Dtype::i32:
      return convert_value<std::int32_t>(bytes, to);
    case Dtype::u32:
      return convert_value<std::uint32_t>(bytes, to);
    case Dtype::i16:
      return convert_value<std::int16_t>(bytes, to);
    case Dtype::u16:
      return convert_value<std::uint16_t>(bytes, to);
    case Dtype::i8:
      return convert_value<std::int8_t>(bytes, to);
    case Dtype::u8:
      return convert_value<std::uint8_t>(bytes, to);
    case Dtype::boolean:
      in_blocks<char>(bytes, to, [](const char* from, float* out, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) out[i] = from[i] != 0 ? 1.0F : 0.0F;
      });
      return;
    case Dtype::f8_e4m3:
    case Dtype::f8_e5m2:
    case Dtype::c64:
    case Dtype::c128:
      break;
  }
  throw Error("a tensor of " + std::string(name_of(dtype)) + " cannot be read as f32");
}

}  // namespace

std::int64_t Tensor::count() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

bool Tensor::contiguous() const {
  if (count() == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t d = shape.size(); d-- > 0; expected *= shape[d]) {
    if (shape[d] != 1 && strides[d] != expected) return false;
  }
  return true;
}

void Tensor::check() const {
  if (!storage) throw Error("tensor without storage");
  if (strides.size() != shape.size()) throw Error("the tensor's numbers of strides and dimensions differ");
  if (offset < 0) throw Error("tensor has a negative offset");
  std::int64_t last = offset;  // the furthest element
  std::int64_t elements = 1;
  bool empty = false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0 || strides[d] < 0) throw Error("tensor has a negative size or stride");
    std::int64_t reach = 0;
    if (shape[d] == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(elements, shape[d], &elements) ||
               __builtin_mul_overflow(shape[d] - 1, strides[d], &reach) || __builtin_add_overflow(last, reach, &last)) {
      throw Error("tensor of shape " + to_text(shape) + " is too large");
    }
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, static_cast<std::int64_t>(size_of(dtype)), &bytes)) {
    throw Error("tensor of shape " + to_text(shape) + " is too large");
  }
  const std::uint64_t held = storage->size() / size_of(dtype);
  if (!empty && static_cast<std::uint64_t>(last) >= held) {
    throw Error("tensor of shape " + to_text(shape) + " reaches element " + std::to_string(last) +
                " of a storage that has " + std::to_string(held));
  }
}

Shape row_major(const Shape& shape) {
  Shape strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    // Counts an empty dimension as one, like PyTorch. Tensor::check() reports overflow.
    stride = static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) *
                                       static_cast<std::uint64_t>(std::max<std::int64_t>(shape[d], 1)));
  }
  return strides;
}

Tensor make_tensor(Dtype dtype, Shape shape, StoragePtr storage) {
  Shape strides = row_major(shape);
  Tensor tensor{dtype, std::move(shape), std::move(strides), 0, std::move(storage)};
  tensor.check();
  if (tensor.byte_count() != tensor.storage->size()) {
    throw Error("tensor of shape " + to_text(tensor.shape) + " and type " + std::string(name_of(dtype)) + " needs " +
                std::to_string(tensor.byte_count()) + " bytes, has " + std::to_string(tensor.storage->size()));
  }
  return tensor;
}

Tensor borrow_f32(Shape shape, std::span<const float> values) {
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return make_tensor(Dtype::f32, std::move(shape), Storage::borrow(bytes));
}

std::string to_text(const Shape& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

void stream(const Tensor& tensor, const Sink& sink, const std::string& place) {
  const std::size_t size = size_of(tensor.dtype);
  if (tensor.contiguous() && tensor.byte_count() == tensor.storage->size()) return tensor.storage->stream(sink, place);
  const char* const start = tensor.storage->bytes().data();
  constexpr std::size_t kPiece = 1 << 20;
  std::string gathered;  // short runs are joined, so that a transposed matrix is not a call per element
  for_each_run(tensor, [&](std::int64_t first, std::int64_t count) {
    const std::string_view run(start + static_cast<std::size_t>(first) * size, static_cast<std::size_t>(count) * size);
    if (run.size() < kPiece) gathered.append(run);
    if (run.size() >= kPiece || gathered.size() >= kPiece) {
      if (!gathered.empty()) sink(gathered);
      gathered.clear();
      if (run.size() >= kPiece) sink(run);
    }
  });
  if (!gathered.empty()) sink(gathered);
}

void read_f32(const Tensor& tensor, std::span<float> to) {
  if (static_cast<std::uint64_t>(tensor.count()) != to.size()) {
    throw Error("tensor of shape " + to_text(tensor.shape) + " does not fit " + std::to_string(to.size()) +
                " elements");
  }
  (void)tensor.storage->bytes();  // a produced storage throws here: its pieces need not be whole elements
  float* out = to.data();
  stream(tensor, [&](std::string_view bytes) {
    convert_block(tensor.dtype, bytes, out);
    out += bytes.size() / size_of(tensor.dtype);
  });
}

void read_f32(const Tensor& tensor, std::int64_t first, std::span<float> to) {
  const auto count = static_cast<std::int64_t>(to.size());
  if (first < 0 || count > tensor.count() - first) {
    throw Error("tensor of shape " + to_text(tensor.shape) + " has no " + std::to_string(count) +
                " elements from number " + std::to_string(first) + " on");
  }
  const std::size_t size = size_of(tensor.dtype);
  const std::string_view bytes = tensor.storage->bytes();
  const auto element = [&](std::int64_t at, std::int64_t length) {
    return bytes.substr(static_cast<std::size_t>(at) * size, static_cast<std::size_t>(length) * size);
  };
  if (tensor.contiguous()) return convert_block(tensor.dtype, element(tensor.offset + first, count), to.data());
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t at = tensor.offset, rest = first + i;
    for (std::size_t d = tensor.shape.size(); d-- > 0; rest /= tensor.shape[d])
      at += rest % tensor.shape[d] * tensor.strides[d];
    convert_block(tensor.dtype, element(at, 1), &to[static_cast<std::size_t>(i)]);
  }
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  const auto bytes_of = [](const Tensor& tensor, std::string& held) -> std::string_view {
    if (tensor.contiguous())
      return tensor.storage->bytes().substr(static_cast<std::size_t>(tensor.offset) * size_of(tensor.dtype),
                                            tensor.byte_count());
    held.resize(tensor.byte_count());
    read_raw(tensor, held);
    return held;
  };
  std::string held_a, held_b;
  return bytes_of(a, held_a) == bytes_of(b, held_b);
}

void read_raw(const Tensor& tensor, std::span<char> to) {
  if (tensor.byte_count() != to.size()) {
    throw Error("tensor of shape " + to_text(tensor.shape) + " does not fit " + std::to_string(to.size()) + " bytes");
  }
  char* out = to.data();
  stream(tensor, [&](std::string_view bytes) {
    if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
    out += bytes.size();
  });
}

}  // namespace zs::tensorfile
