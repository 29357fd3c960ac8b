// SPDX-License-Identifier: Apache-2.0
// Which of cuBLASLt's kernels computes a matrix product on a GPU, found by measurement: one table for each model of GPU
// and version of cuBLAS, in the user's cache. Other kernels add in another order: the table is part of the arithmetic,
// and named by its hash.
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

  /// A hash of the products, 16 hex digits; "" of none.
  std::string hash() const;
  /// Where the table of a GPU belongs: $XDG_CACHE_HOME/zs/products, or that of $HOME.
  static std::string place(const std::string& gpu, const std::string& cublas);
  /// The table that is there; an empty one where there is none. Throws zs::Error with path and line at one that is
  /// broken, or of another GPU.
  static Calibration read(const std::string& gpu, const std::string& cublas);
  /// Writes it into its place; returns the path.
  std::string write() const;
};

/// Products of `device` that a process makes from now on take the kernels of its table where `calibrated`, and
/// cuBLASLt's own first choice where not, or where the table has none. On a CPU nothing happens. For the whole process.
void use_products(const device::Device& device, bool calibrated);
/// What use_products() came to: the hash of a table, "first", or "" on a CPU.
const std::string& products_in_use();
/// Whether fused kernels of a GPU repeat their bits (they do, unless told otherwise), or are any that its libraries
/// have: attention's backward adds as it comes, and products are chosen by where their operands begin. For the whole
/// process, before its first product.
void repeat_bits(bool on);
/// Operations a second that a large product reaches here, as it was measured; 0 where it was not.
double matrix_rate(const std::string& format);

/// A product that was measured: seconds of cuBLASLt's first choice, and of the fastest.
struct Measured {
  std::string product, algorithm;
  double first = 0, best = 0;
};
/// Runs `body`, in which each new product is measured before it is made. REQUIRES: a GPU is in use.
std::vector<Measured> measure_products(const std::function<void()>& body);
/// Operations a second of a large product of float32 (or TF32) or bfloat16. REQUIRES: a GPU is in use.
double measure_rate(device::Type type);

}  // namespace zs::kernel
