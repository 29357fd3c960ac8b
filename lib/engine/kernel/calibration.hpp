// SPDX-License-Identifier: Apache-2.0
// The fastest cuBLASLt kernel for each matrix product on a GPU, found by measurement: one table per model of GPU and
// version of cuBLAS, in the user's cache. Kernels differ in their order of additions, so the table is part of the
// arithmetic, and identified by its hash.
//
//   #zs-products 1
//   gpu      NVIDIA H200
//   cublas   130100
//   rate     bfloat16    781000000000000     (operations a second of a large product)
//   product  PRODUCT     ALGORITHM           (what multiply() is asked for; 64 bytes in hex)
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "device/view.hpp"

namespace zs::kernel {

struct Calibration {
  std::string gpu, cublas;
  std::map<std::string, double> rates;          ///< by number format
  std::map<std::string, std::string> products;  ///< the algorithm of each

  /// A hash of the products, 16 hex digits; "" if there are none.
  std::string hash() const;
  /// The path of a GPU's table: in $XDG_CACHE_HOME/zs/products, or in the cache folder of $HOME.
  static std::string place(const std::string& gpu, const std::string& cublas);
  /// Reads the table; an empty one if there is none. Throws zs::Error with path and line if it is malformed, or of
  /// another GPU.
  static Calibration read(const std::string& gpu, const std::string& cublas);
  /// Writes it to its path; returns the path.
  std::string write() const;
};

/// Later products of this process on `device` use the kernels of its table if `calibrated`, else, and for products that
/// are not in the table, cuBLASLt's first choice. No effect on a CPU. For the whole process.
void use_products(const device::Device& device, bool calibrated);
/// The result of use_products(): the hash of a table, "first", or "" on a CPU.
const std::string& products_in_use();
/// Whether fused kernels of a GPU must give reproducible bits (the default), or may be any of its libraries: then
/// attention's backward adds in any order, and the choice of products depends on the alignment of operands. For the
/// whole process, before its first product.
void repeat_bits(bool on);
/// Measured operations per second of a large product here; 0 if not measured.
double matrix_rate(const std::string& format);

/// A measured product: seconds of cuBLASLt's first choice and of the fastest one, on a GPU that is as busy as in a
/// step; or attention, which has no choice: without an algorithm, and with equal times.
struct Measured {
  std::string product, algorithm;
  double first = 0, best = 0;
  double operations = 0;   ///< of a call, multiplications and additions
  std::int64_t calls = 0;  ///< in the body
};
/// Runs `body`, measures each new product and attention of 16 bits before it is computed, and counts the calls.
/// REQUIRES: a GPU is in use.
std::vector<Measured> measure_products(const std::function<void()>& body);
/// Operations per second of a large product of float32 (or TF32) or bfloat16, on a busy GPU. REQUIRES: a GPU is in use.
double measure_rate(device::Type type);

}  // namespace zs::kernel
