// SPDX-License-Identifier: Apache-2.0
#include "unit/random.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <xxhash.h>

namespace zs::unit {

std::uint64_t mix(std::uint64_t key, std::uint64_t value) { return XXH3_64bits_withSeed(&value, sizeof value, key); }
std::uint64_t mix(std::uint64_t key, std::string_view name) {
  return XXH3_64bits_withSeed(name.data(), name.size(), key);
}

at::Generator generator(std::uint64_t key) { return at::make_generator<at::CPUGeneratorImpl>(key); }

at::Tensor dropout_mask(const at::Tensor& x, double p, std::uint64_t key) {
  const at::NoGradGuard no_grad;
  // The numbers are the CPU generator's on every device.
  return at::empty_like(x, x.options().device(at::kCPU)).bernoulli_(1 - p, generator(key)).div_(1 - p).to(x.device());
}

at::Tensor dropout(const at::Tensor& x, double p, std::uint64_t key) {
  return p == 0 ? x : x * dropout_mask(x, p, key);
}

}  // namespace zs::unit
