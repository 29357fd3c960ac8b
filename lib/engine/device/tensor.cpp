// SPDX-License-Identifier: Apache-2.0
#include "device/tensor.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <future>

namespace zs::device {

at::Device torch_device(const Device& device) {
  if (device.kind == Device::Kind::cpu) return at::kCPU;
  return {at::kCUDA, static_cast<at::DeviceIndex>(device.index)};
}

at::ScalarType torch_type(Type type) {
  constexpr at::ScalarType kTypes[] = {at::kByte, at::kBFloat16, at::kHalf, at::kFloat, at::kDouble};
  return kTypes[static_cast<int>(type)];
}

Type type_of(at::ScalarType type) {
  for (const Type ours : {Type::bfloat16, Type::float16, Type::float32, Type::float64}) {
    if (torch_type(ours) == type) return ours;
  }
  return Type::byte;
}

at::TensorOptions options(const Device& device, at::ScalarType type) {
  return at::TensorOptions(type).device(torch_device(device));
}

at::Tensor tensor(const View& view) {
  // Of nothing there may be no memory, and LibTorch would look for the GPU that has it.
  if (view.count == 0) return at::empty({0}, options(view.device, torch_type(view.type)));
  return at::from_blob(view.data, {view.count}, options(view.device, torch_type(view.type)));
}

View view(const at::Tensor& tensor) {
  const Type type = type_of(tensor.scalar_type());
  const Device device{tensor.is_cuda() ? Device::Kind::cuda : Device::Kind::cpu,
                      tensor.is_cuda() ? static_cast<int>(tensor.device().index()) : 0};
  return {static_cast<std::byte*>(tensor.data_ptr()), static_cast<std::int64_t>(tensor.nbytes()) / size(type), type,
          device};
}

std::span<float> floats(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

at::Tensor placeholder(std::int64_t n, at::ScalarType type, const Device& device) {
  const c10::Storage storage(c10::Storage::use_byte_size_t(), static_cast<std::size_t>(n) * at::elementSize(type),
                             at::DataPtr(nullptr, torch_device(device)), nullptr, false);
  return at::empty({0}, options(device, type)).set_(storage, 0, {n}, {1});
}

void point_at(const at::Tensor& placeholder, std::byte* data) {
  placeholder.storage().set_data_ptr_noswap(at::DataPtr(data, placeholder.device()));
}

void clear(const View& view) { tensor(view).zero_(); }

void copy(const View& to, const View& from) {
  if (to.data != from.data || to.type != from.type) tensor(to).copy_(tensor(from));
}

struct Hash::State {
  XXH3_state_t* hash = XXH3_createState();
  ~State() { XXH3_freeState(hash); }
};

Hash::Hash() : state_(new State) { XXH3_128bits_reset(state_->hash); }
Hash::~Hash() { delete state_; }

void Hash::add(const View& view) {
  if (view.device.kind == Device::Kind::cpu) {
    XXH3_128bits_update(state_->hash, view.data, static_cast<std::size_t>(view.bytes()));
    return;
  }
  // By way of two small pinned buffers, since to fill much new memory of the host takes longer than all else; one is
  // filled while the other is read.
  constexpr std::int64_t kPart = std::int64_t{16} << 20;
  const at::Tensor source = tensor(view);
  const at::Tensor here =
      at::empty({2, std::min(kPart, view.count)}, at::TensorOptions(source.scalar_type()).pinned_memory(true));
  std::future<void> reading;
  for (std::int64_t begin = 0, turn = 0; begin < view.count; begin += kPart, turn = 1 - turn) {
    const at::Tensor part = here[turn].narrow(0, 0, std::min(kPart, view.count - begin));
    part.copy_(source.narrow(0, begin, part.numel()));
    if (reading.valid()) reading.get();
    reading = std::async(std::launch::async, [this, at = part.data_ptr(), bytes = part.nbytes()] {
      XXH3_128bits_update(state_->hash, at, bytes);
    });
  }
  if (reading.valid()) reading.get();
}

void Hash::add(std::string_view bytes) { XXH3_128bits_update(state_->hash, bytes.data(), bytes.size()); }

std::string Hash::text() const {
  const XXH128_hash_t value = XXH3_128bits_digest(state_->hash);
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(value.high64),
                static_cast<unsigned long long>(value.low64));
  return text;
}

void flip_lowest_bit(const View& one) {
  const at::Tensor value = tensor(one).to(at::kCPU, /*non_blocking=*/false, /*copy=*/true);
  *static_cast<std::uint8_t*>(value.data_ptr()) ^= 1;  // little-endian, as everything zs writes
  copy(one, view(value));
}

}  // namespace zs::device
