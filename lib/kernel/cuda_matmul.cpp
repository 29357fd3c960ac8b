// SPDX-License-Identifier: Apache-2.0
// cuBLASLt thinks in columns: a row-major tensor [M, N] is its matrix N x M, so out^T = b^T a^T is what is asked for.
#include <ATen/cuda/CUDAContext.h>
#include <cublasLt.h>

#include <array>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "kernel/matmul.hpp"

namespace zs::kernel::cuda {
namespace {

constexpr std::size_t kWorkspace = std::size_t{64} << 20;  // an input of the choice: never from what memory is free
constexpr std::int64_t kAlignment = 16;                    // bytes, promised for every operand, whatever it really has

bool tf32 = false;

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw Error(std::string(what) + ": " + cublasGetStatusString(status));
}

cudaDataType_t type_of(const at::Tensor& x) {
  switch (x.scalar_type()) {
    case at::kFloat:
      return CUDA_R_32F;
    case at::kBFloat16:
      return CUDA_R_16BF;
    case at::kHalf:
      return CUDA_R_16F;
    default:
      throw Error(std::string("matrix product of type ") + at::toString(x.scalar_type()));
  }
}

/// A row-major [rows, columns] tensor as cuBLASLt sees it: `transposed` where its columns are the contiguous ones.
struct Operand {
  explicit Operand(const at::Tensor& x) : type(type_of(x)) {
    transposed = x.stride(1) != 1;
    if (transposed && x.stride(0) != 1) throw Error("matrix product: neither rows nor columns are contiguous");
    const std::int64_t inner = transposed ? x.size(0) : x.size(1), outer = transposed ? x.size(1) : x.size(0);
    rows = inner, columns = outer;
    ld = std::max(transposed ? x.stride(1) : x.stride(0), inner);
    const auto element = static_cast<std::int64_t>(x.element_size());
    aligned = reinterpret_cast<std::uintptr_t>(x.data_ptr()) % kAlignment == 0 && ld * element % kAlignment == 0;
  }
  cudaDataType_t type;
  bool transposed;
  std::int64_t rows, columns, ld;
  bool aligned;
  auto key() const { return std::tuple(static_cast<int>(type), transposed, rows, columns, ld, aligned); }
};

struct Product {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
};

cublasLtMatrixLayout_t layout(const Operand& x) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, x.type, static_cast<std::uint64_t>(x.rows),
                                   static_cast<std::uint64_t>(x.columns), x.ld),
        "matrix layout");
  return made;
}

template <typename T>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value), "matrix product");
}

class Products {
 public:
  Products() {
    check(cublasLtCreate(&handle_), "cuBLASLt");
    workspace_ = at::empty({static_cast<std::int64_t>(kWorkspace)}, at::TensorOptions(at::kByte).device(at::kCUDA));
    constants_ = at::tensor({1.0F, 0.0F}, at::TensorOptions(at::kFloat)).to(at::kCUDA);
  }

  void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const Epilogue& epilogue) {
    // In columns: the first operand is b, the second a.
    const Operand first(b), second(a), result(out);
    if (result.transposed) throw Error("matrix product: the rows of the result are not contiguous");
    Product& product = find(first, second, result, epilogue);
    if (epilogue.bias_N.defined())
      set(product.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(epilogue.bias_N.data_ptr()));
    const bool adds = epilogue.addend_MN.defined();
    const float one = 1, zero = 0;
    const bool on_device = epilogue.alpha.defined();
    const auto* const constants = constants_.data_ptr<float>();
    const void* const alpha = on_device ? epilogue.alpha.data_ptr() : static_cast<const void*>(&one);
    const void* const beta = on_device ? static_cast<const void*>(constants + (adds ? 0 : 1)) : adds ? &one : &zero;
    const void* const addend = adds ? epilogue.addend_MN.data_ptr() : out.data_ptr();
    check(cublasLtMatmul(handle_, product.description, alpha, b.data_ptr(), product.a, a.data_ptr(), product.b, beta,
                         addend, product.c, out.data_ptr(), product.c, &product.algorithm, workspace_.data_ptr(),
                         kWorkspace, at::cuda::getCurrentCUDAStream()),
          "matrix product");
  }

 private:
  using Key = std::tuple<decltype(std::declval<Operand>().key()), decltype(std::declval<Operand>().key()),
                         decltype(std::declval<Operand>().key()), bool, bool, bool, bool>;
  cublasLtHandle_t handle_ = nullptr;
  at::Tensor workspace_, constants_;
  std::map<Key, Product> products_;

  Product& find(const Operand& first, const Operand& second, const Operand& result, const Epilogue& epilogue) {
    const bool bias = epilogue.bias_N.defined(), adds = epilogue.addend_MN.defined(), device = epilogue.alpha.defined();
    const Key key(first.key(), second.key(), result.key(), bias, adds, device, tf32);
    const auto found = products_.find(key);
    if (found != products_.end()) return found->second;
    Product product;
    const bool fast = tf32 && first.type == CUDA_R_32F;
    check(cublasLtMatmulDescCreate(&product.description, fast ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                   CUDA_R_32F),
          "matrix product");
    if (first.transposed) set(product.description, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    if (second.transposed) set(product.description, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T);
    if (bias) {
      set(product.description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set(product.description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(result.type));
    }
    if (device) set(product.description, CUBLASLT_MATMUL_DESC_POINTER_MODE, std::int32_t{CUBLASLT_POINTER_MODE_DEVICE});
    product.a = layout(first), product.b = layout(second), product.c = layout(result);
    product.algorithm = choose(product, first.aligned && second.aligned && result.aligned);
    return products_.emplace(key, product).first->second;
  }

  /// The library's first choice under constant conditions.
  cublasLtMatmulAlgo_t choose(const Product& product, bool aligned) {
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "matrix product");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value), "matrix product");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
    // Partial sums of a split product are added in float32, never in the type of the result.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    const std::uint32_t alignment = aligned ? kAlignment : 4;
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(attribute, alignment);
    cublasLtMatmulHeuristicResult_t result{};
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, product.description, product.a, product.b,
                                                                 product.c, product.c, preference, 1, &result, &count);
    cublasLtMatmulPreferenceDestroy(preference);
    check(status, "choice of a matrix product's kernel");
    if (count == 0) throw Error("cuBLASLt has no kernel for a matrix product");
    return result.algo;
  }
};

}  // namespace

void multiply(at::Tensor out_MN, const at::Tensor& a_MK, const at::Tensor& b_KN, const Epilogue& epilogue) {
  static std::array<std::unique_ptr<Products>, 64> products;  // by device
  auto& mine = products.at(static_cast<std::size_t>(out_MN.device().index()));
  if (!mine) mine = std::make_unique<Products>();
  mine->multiply(out_MN, a_MK, b_KN, epilogue);
}

void allow_tf32(bool allow) { tf32 = allow; }

}  // namespace zs::kernel::cuda
