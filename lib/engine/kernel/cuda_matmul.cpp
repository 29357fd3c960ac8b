// SPDX-License-Identifier: Apache-2.0
// cuBLASLt uses column order: a row-major tensor [M, N] is its matrix N x M, so this code asks for out^T = b^T a^T.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "device/tensor.hpp"
#include "kernel/calibration.hpp"
#include "kernel/cuda_product.hpp"
#include "kernel/matmul.hpp"

namespace zs::kernel::cuda {
namespace {

constexpr std::size_t kWorkspace = std::size_t{64} << 20;  // a fixed input of the choice, independent of free memory
constexpr int kCandidates = 16;          // what is measured of one product, with a workspace and without
constexpr std::size_t kBest = 3;         // other candidates that are measured on a busy GPU, like the first choice
constexpr double kBusy = 0.1;            // seconds that a GPU is busy before it is measured, and while it is
constexpr std::int64_t kAlignment = 16;  // bytes, promised for every operand, whatever it really has

bool tf32 = false, repeats = true;
std::map<std::string, std::string> table;   // product -> algorithm, of a calibration
std::vector<Measured>* measured = nullptr;  // while products are measured

/// The measurement with that name; null if there is none. REQUIRES: products are measured.
Measured* entry(const std::string& name) {
  const auto found = std::ranges::find(*measured, name, &Measured::product);
  return found == measured->end() ? nullptr : &*found;
}

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
    case at::kFloat8_e4m3fn:
      return CUDA_R_8F_E4M3;
    case at::kFloat8_e5m2:
      return CUDA_R_8F_E5M2;
    default:
      throw Error(std::string("matrix product of type ") + at::toString(x.scalar_type()));
  }
}

const char* name_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_32F:
      return "float32";
    case CUDA_R_16BF:
      return "bfloat16";
    case CUDA_R_8F_E4M3:
      return "float8_e4m3";
    case CUDA_R_8F_E5M2:
      return "float8_e5m2";
    default:
      return "float16";
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
    const auto begin = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(x.data_ptr()));
    aligned = begin % kAlignment == 0 && ld * element % kAlignment == 0;
    alignment = std::gcd(std::gcd(begin, ld * element), std::int64_t{256});
  }
  cudaDataType_t type;
  bool transposed;
  std::int64_t rows, columns, ld;
  bool aligned;
  std::int64_t alignment;  ///< bytes of which it really begins at a multiple, and each row: 256 at most
  bool narrow() const { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }
  auto key() const {
    return std::tuple(static_cast<int>(type), transposed, rows, columns, ld, aligned, repeats ? 0 : alignment);
  }
  /// "bfloat16.T.768x2304.768", with "+4" where its rows begin anywhere.
  std::string text() const {
    return std::string(name_of(type)) + (transposed ? ".T." : ".N.") + std::to_string(rows) + "x" +
           std::to_string(columns) + "." + std::to_string(ld) + (aligned ? "" : "+4");
  }
};

constexpr double kNever = 1e9;  ///< seconds of a call that fails

/// Seconds of a call on a GPU that rests before: the least mean of some rounds.
double seconds_of(const std::function<bool()>& call) {
  constexpr int kRounds = 4, kCalls = 5;
  double least = kNever;
  for (int round = 0; round < kRounds; ++round) {
    at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
    begin.record();
    for (int i = 0; i < kCalls; ++i) {
      if (!call()) return kNever;
    }
    end.record();
    end.synchronize();
    if (round > 0) least = std::min(least, static_cast<double>(begin.elapsed_time(end)) * 1e-3 / kCalls);
  }
  return least;
}

/// The mean in a step, where the GPU is always busy: then its clock goes by the power that kernels take, and one that
/// is the fastest for a moment may be slower than one that needs less.
double busy_seconds_of(const std::function<bool()>& call) {
  const double alone = seconds_of(call);
  if (alone == kNever) return kNever;
  const int calls = std::max(1, static_cast<int>(kBusy / alone));
  at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
  for (int i = 0; i < calls; ++i) call();
  begin.record();
  for (int i = 0; i < calls; ++i) call();
  end.record();
  end.synchronize();
  return static_cast<double>(begin.elapsed_time(end)) * 1e-3 / calls;
}

struct Product {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  bool fits = true;            ///< every operand begins at a multiple of kAlignment
  std::int64_t alignment = 0;  ///< and at one of this
  std::string name{};          ///< in the measurements; empty: it was not measured
};

/// The 64 bytes of an algorithm in hex, and back: they are all of it, for one version of the library.
std::string to_text(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const unsigned char byte : std::bit_cast<std::array<unsigned char, sizeof algorithm>>(algorithm)) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += {kDigits[byte / 16], kDigits[byte % 16]};
  }
  return text;
}
cublasLtMatmulAlgo_t algorithm_of(const std::string& text) {
  std::array<unsigned char, sizeof(cublasLtMatmulAlgo_t)> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return std::bit_cast<cublasLtMatmulAlgo_t>(bytes);
}

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

/// Whether factors of 8 bits have a scale for each row of the one, and each column of the other.
bool by_row(const Epilogue& epilogue) { return epilogue.unit_a.defined() && epilogue.unit_a.dim() > 0; }

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
    bool fresh = false;
    Product& product = find(first, second, result, epilogue, fresh);
    if (epilogue.bias_N.defined())
      set(product.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(epilogue.bias_N.data_ptr()));
    if (first.narrow()) {
      set(product.description, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
          static_cast<const void*>(epilogue.unit_b.data_ptr()));
      set(product.description, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
          static_cast<const void*>(epilogue.unit_a.data_ptr()));
    }
    const bool adds = epilogue.addend_MN.defined();
    const float one = 1, zero = 0;
    const bool on_device = epilogue.alpha.defined();
    const auto* const constants = constants_.data_ptr<float>();
    const void* const alpha = on_device ? epilogue.alpha.data_ptr() : static_cast<const void*>(&one);
    const void* const beta = on_device ? static_cast<const void*>(constants + (adds ? 0 : 1)) : adds ? &one : &zero;
    const void* const addend = adds ? epilogue.addend_MN.data_ptr() : out.data_ptr();
    const auto make = [&](const cublasLtMatmulAlgo_t& algorithm, const void* addend, void* into) {
      return cublasLtMatmul(handle_, product.description, alpha, b.data_ptr(), product.a, a.data_ptr(), product.b, beta,
                            addend, product.c, into, product.c, &algorithm, workspace_.data_ptr(), kWorkspace,
                            at::cuda::getCurrentCUDAStream());
    };
    if (fresh) {
      const std::string name = first.text() + " " + second.text() + " " + result.text() +
                               (epilogue.bias_N.defined() ? " bias" : "") + (adds ? " addend" : "") +
                               (on_device ? " alpha" : "") + (epilogue.quick ? " quick" : "") +
                               (by_row(epilogue) ? " rows" : "") + (tf32 && first.type == CUDA_R_32F ? " tf32" : "");
      choose(
          product, name, 2 * static_cast<double>(out.numel() * a.size(1)),
          [&](const cublasLtMatmulAlgo_t& algorithm, const at::Tensor& into) {
            return make(algorithm, into.data_ptr(), into.data_ptr()) == CUBLAS_STATUS_SUCCESS;
          },
          out);
    }
    if (measured && !product.name.empty()) ++entry(product.name)->calls;
    check(make(product.algorithm, addend, out.data_ptr()), "matrix product");
  }

  /// Products are chosen again.
  void forget() {
    for (const auto& [key, product] : products_) {
      cublasLtMatmulDescDestroy(product.description);
      for (const auto layout : {product.a, product.b, product.c}) cublasLtMatrixLayoutDestroy(layout);
    }
    products_.clear();
  }

 private:
  using Key = std::tuple<decltype(std::declval<Operand>().key()), decltype(std::declval<Operand>().key()),
                         decltype(std::declval<Operand>().key()), bool, bool, bool, bool, bool, bool>;
  cublasLtHandle_t handle_ = nullptr;
  at::Tensor workspace_, constants_;
  std::map<Key, Product> products_;

  Product& find(const Operand& first, const Operand& second, const Operand& result, const Epilogue& epilogue,
                bool& fresh) {
    const bool bias = epilogue.bias_N.defined(), adds = epilogue.addend_MN.defined(), device = epilogue.alpha.defined();
    const Key key(first.key(), second.key(), result.key(), bias, adds, device, epilogue.quick, tf32, by_row(epilogue));
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
    if (epilogue.quick) set(product.description, CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
    if (by_row(epilogue)) {
      constexpr std::int32_t kEach = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
      set(product.description, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, kEach);
      set(product.description, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, kEach);
    }
    if (device) set(product.description, CUBLASLT_MATMUL_DESC_POINTER_MODE, std::int32_t{CUBLASLT_POINTER_MODE_DEVICE});
    product.a = layout(first), product.b = layout(second), product.c = layout(result);
    product.fits = first.aligned && second.aligned && result.aligned;
    product.alignment = std::min({first.alignment, second.alignment, result.alignment});
    fresh = true;
    return products_.emplace(key, product).first->second;
  }

  /// Runs an algorithm into other memory; false where the library cannot.
  using Try = std::function<bool(const cublasLtMatmulAlgo_t& algorithm, const at::Tensor& into)>;

  /// The algorithm of the table, or the library's first choice; while products are measured, the fastest of its first.
  void choose(Product& product, const std::string& name, double operations, const Try& run, const at::Tensor& out) {
    const auto stored = table.find(name);
    if (measured) {
      // With a workspace the library splits products of many terms first, even where adding up the parts costs more.
      auto offered = first_choices(product, kCandidates);
      const auto more = choices(product, kCandidates, /*workspace=*/0);
      offered.insert(offered.end(), more.begin(), more.end());
      const at::Tensor into = at::empty_strided(out.sizes(), out.strides(), out.options());
      const auto call = [&](const cublasLtMatmulAlgo_t& algorithm) {
        return [&run, &into, algorithm] { return run(algorithm, into); };
      };
      std::map<double, std::size_t> fastest;  // the others, each once
      std::set<std::string> known = {to_text(offered[0])};
      for (std::size_t i = 1; i < offered.size(); ++i) {
        if (known.insert(to_text(offered[i])).second) fastest.emplace(seconds_of(call(offered[i])), i);
      }
      fastest.erase(kNever);
      while (fastest.size() > kBest) fastest.erase(std::prev(fastest.end()));
      product.algorithm = offered[0];
      const double first = busy_seconds_of(call(offered[0]));
      Measured best{name, to_text(offered[0]), first, first, operations};
      for (const auto& [alone, i] : fastest) {
        const double busy = busy_seconds_of(call(offered[i]));
        // Another one than the first has to be worth it: by more than times differ by chance.
        if (busy < 0.99 * best.best)
          best.best = busy, best.algorithm = to_text(offered[i]), product.algorithm = offered[i];
      }
      measured->push_back(best);
      product.name = name;
    } else if (stored == table.end()) {
      product.algorithm = first_choices(product, 1).front();
    } else {
      product.algorithm = algorithm_of(stored->second);
      cublasLtMatmulHeuristicResult_t result{};
      if (cublasLtMatmulAlgoCheck(handle_, product.description, product.a, product.b, product.c, product.c,
                                  &product.algorithm, &result) != CUBLAS_STATUS_SUCCESS ||
          result.workspaceSize > kWorkspace)
        throw Error("the kernel that was calibrated for the product " + name +
                    " cannot compute it here: run zs-train --calibrate again, or use --products first");
    }
  }

  /// The library's first choices, the best first, under constant conditions; none where it knows none.
  std::vector<cublasLtMatmulAlgo_t> choices(const Product& product, int most, std::size_t workspace) {
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "matrix product");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value), "matrix product");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
    // Partial sums of a split product are added in float32, never in the type of the result.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           std::uint32_t{repeats ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_MASK});
    const auto alignment = static_cast<std::uint32_t>(!repeats ? product.alignment : product.fits ? kAlignment : 4);
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(attribute, alignment);
    std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle_, product.description, product.a, product.b, product.c, product.c,
                                       preference, most, results.data(), &count);
    cublasLtMatmulPreferenceDestroy(preference);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status, "choice of a matrix product's kernel");
    std::vector<cublasLtMatmulAlgo_t> algorithms;
    for (int i = 0; i < count; ++i) algorithms.push_back(results[static_cast<std::size_t>(i)].algo);
    return algorithms;
  }

  /// At least one.
  std::vector<cublasLtMatmulAlgo_t> first_choices(const Product& product, int most) {
    const auto algorithms = choices(product, most, kWorkspace);
    if (algorithms.empty()) throw Error("cuBLASLt has no kernel for a matrix product");
    return algorithms;
  }
};

/// By device.
std::array<std::unique_ptr<Products>, 64>& all_products() {
  static std::array<std::unique_ptr<Products>, 64> products;
  return products;
}

}  // namespace

void multiply(at::Tensor out_MN, const at::Tensor& a_MK, const at::Tensor& b_KN, const Epilogue& epilogue) {
  auto& mine = all_products().at(static_cast<std::size_t>(out_MN.device().index()));
  if (!mine) mine = std::make_unique<Products>();
  mine->multiply(out_MN, a_MK, b_KN, epilogue);
}

bool measuring() { return measured != nullptr; }

void measure(const std::string& name, double operations, const std::function<void()>& call) {
  if (!entry(name)) {
    const double seconds = busy_seconds_of([&] { return call(), true; });
    measured->push_back({name, "", seconds, seconds, operations});
  }
  ++entry(name)->calls;
}

bool tf32_allowed() { return tf32; }
bool bits_repeat() { return repeats; }

/// Float32 products by TF32 (10 bits of mantissa) instead of float32. For the whole process.
extern "C" void zs_cuda_allow_tf32(bool allow) { tf32 = allow; }

/// For the whole process; before the first product.
extern "C" void zs_cuda_repeat_bits(bool on) { repeats = on; }

/// Sets the algorithms of products from now on; see use_products().
extern "C" void zs_cuda_use_products(const std::map<std::string, std::string>& products) {
  if (table == products) return;
  table = products;
  for (const auto& each : all_products()) {
    if (each) each->forget();
  }
}

/// From now on new products are measured, into `into`; nullptr: no longer.
extern "C" void zs_cuda_measure_products(std::vector<Measured>* into) { measured = into; }

extern "C" double zs_cuda_matrix_rate(device::Type type) {
  constexpr std::int64_t kSide = 8192;
  const at::TensorOptions options = at::TensorOptions(device::torch_type(type)).device(at::kCUDA);
  const at::Tensor a = at::randn({kSide, kSide}, options), b = at::randn({kSide, kSide}, options),
                   c = at::empty({kSide, kSide}, options);
  const Factor first(a, Factor::Role::value, Factor::Wants::rows),
      second(b, Factor::Role::value, Factor::Wants::columns);
  const auto product = [&] { return multiply(c, first.rows(), second.columns()), true; };
  product();  // its kernel is chosen
  return 2.0 * kSide * kSide * kSide / busy_seconds_of(product);
}

}  // namespace zs::kernel::cuda
