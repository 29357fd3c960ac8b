// SPDX-License-Identifier: Apache-2.0
#include "device/backend.hpp"
#include "device/memory.hpp"
#include "kernel/calibration.hpp"
#include "kernel/kernels.hpp"

namespace zs::kernel {

const Kernels& chosen(bool fused, at::DeviceType device) {
  if (!fused) return plain();
  if (device == at::kCPU) return kernel::fused();
  static const Kernels* const gpu = device::cuda::function<const Kernels*()>("zs_cuda_kernels")();
  return *gpu;
}

void allow_tf32(bool allow) {
  at::globalContext().setAllowTF32CuBLAS(allow);
  if (device::cuda::loaded()) device::cuda::function<void(bool)>("zs_cuda_allow_tf32")(allow);
}

void use_float8(Scales scales) {
  if (device::cuda::loaded()) device::cuda::function<void(Scales)>("zs_cuda_use_float8")(scales);
}

void repeat_bits(bool on) {
  if (device::cuda::loaded()) device::cuda::function<void(bool)>("zs_cuda_repeat_bits")(on);
}

namespace {

Calibration table;
std::string in_use;

}  // namespace

void use_products(const device::Device& device, bool calibrated) {
  if (device.kind == device::Device::Kind::cpu) return;
  const auto facts = device::arithmetic(device);
  table = Calibration::read(facts.at("gpu"), facts.at("cublas"));
  if (!calibrated) table.products.clear();
  device::cuda::function<void(const std::map<std::string, std::string>&)>("zs_cuda_use_products")(table.products);
  in_use = table.products.empty() ? "first" : table.hash();
}

const std::string& products_in_use() { return in_use; }

double matrix_rate(const std::string& format) {
  const auto found = table.rates.find(format);
  return found == table.rates.end() ? 0 : found->second;
}

std::vector<Measured> measure_products(const std::function<void()>& body) {
  std::vector<Measured> products;
  const auto measure = device::cuda::function<void(std::vector<Measured>*)>("zs_cuda_measure_products");
  measure(&products);
  body();
  measure(nullptr);
  return products;
}

double measure_rate(device::Type type) {
  return device::cuda::function<double(device::Type)>("zs_cuda_matrix_rate")(type);
}

}  // namespace zs::kernel
