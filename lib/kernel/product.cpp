// SPDX-License-Identifier: Apache-2.0
#include "kernel/product.hpp"

#include <ATen/record_function.h>

// LibTorch's way into oneDNN for dense matrices: in no header that is shipped. Weak: a LibTorch that has it not is
// fine.
namespace at::native {
[[gnu::weak]] void mkldnn_matmul(const Tensor& a, const Tensor& b, const Tensor& out, float beta, float alpha);
}

namespace zs::kernel {
namespace {

/// Below so many multiplications, to hand them to oneDNN costs more than it gains.
constexpr std::int64_t kLarge = 1 << 22;

/// Tried once: LibTorch before 2.8 takes matrices of 16 bits alone, and one of another make may have no oneDNN.
bool works(at::ScalarType type) {
  if (at::native::mkldnn_matmul == nullptr || !at::hasMKLDNN()) return false;
  const at::Tensor a = at::arange(6, type).view({2, 3}), out = at::ones({2, 2}, type);
  try {
    at::native::mkldnn_matmul(a, a.t(), out, 1, 1);
  } catch (const std::exception&) {
    return false;
  }
  return at::equal(out.to(at::kFloat), at::tensor({6.0F, 15.0F, 15.0F, 51.0F}).view({2, 2}));
}

}  // namespace

bool multiplies_by_onednn(at::ScalarType type) {
  static const bool wide = works(at::kFloat), narrow = works(at::kBFloat16);
  return type == at::kFloat ? wide : type == at::kBFloat16 && narrow;
}

void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, double beta, double alpha) {
  RECORD_USER_SCOPE("zs::product");
  if (a.size(0) * a.size(1) * b.size(1) >= kLarge && multiplies_by_onednn(out.scalar_type())) {
    at::native::mkldnn_matmul(a, b, out, static_cast<float>(beta), static_cast<float>(alpha));
  } else {
    at::Tensor place = out;
    at::addmm_out(place, place, a, b, beta, alpha);
  }
}

}  // namespace zs::kernel
