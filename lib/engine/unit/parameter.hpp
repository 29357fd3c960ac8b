// SPDX-License-Identifier: Apache-2.0
// One parameter tensor of a unit.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace zs::unit {

/// Elements [begin, end) of a unit's flat buffer.
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  /// The intersection; its size is 0 if they have nothing in common.
  Range within(std::int64_t from, std::int64_t to) const;
};

/// One parameter tensor: its range in the unit's flat buffer (row-major, no padding), its initial values, and whether
/// it is trained. Trained parameters come first in the buffer: gradients, optimizer state, reductions and the gathers
/// after an update cover only the first part. Matrices that are held in 4 bits come last.
struct Parameter {
  enum class Init { normal, uniform, zeros, ones };
  /// Whether it is the weight of a product, and its layout.
  enum class Product { none, out_in, in_out };
  /// Whether a frozen matrix is held in 4 bits, with scales of 32 bits or of 8 (device/nf4.hpp).
  enum class Packing { none, nf4, nested_nf4 };
  std::string name{};  ///< the name in Hugging Face's state_dict
  std::vector<std::int64_t> shape{};
  Init init = Init::normal;
  double mean = 0, std = 0;  ///< for normal; a uniform one is between mean - std and mean + std
  bool decay = true;         ///< false for biases and norms, which can be excluded from weight decay
  std::int64_t offset = 0;   ///< elements from the start of the flat buffer; set by Unit
  std::string stack{};       ///< files have it as row `row` of `rows` of this tensor; "": as a tensor of its name
  std::int64_t row = 0, rows = 1;
  std::string other_name{};  ///< an alternative name in files of other programs, or ""
  std::string keys{};        ///< the keys of config.json that determine its shape: "vocab_size, n_embd"
  bool head = false;         ///< of a task's head: a folder of the model for another task lacks it, or has another
  Product product = Product::none;
  int float8_scale = -1;  ///< of a product that --fp8 rounds: the unit's weights with the same number share a scale
  bool trained = true;    ///< false: frozen at its initial values
  Packing packing = Packing::none;
  bool added = false;        ///< of an adapter: files of the model lack it
  int adapter = -1;          ///< of a product: index of its lora_A among the unit's parameters, before lora_B
  double adapter_scale = 0;  ///< factor of their product
  bool expert = false;       ///< of an expert
  std::int64_t idle = 0;     ///< numbers of it that a token does not meet, on average over the experts

  std::int64_t numel() const;
  Range place() const { return {offset, offset + numel()}; }
  /// Its tensor in files: the name, and the shape.
  const std::string& name_in_files() const { return stack.empty() ? name : stack; }
  std::vector<std::int64_t> shape_in_files() const;
  /// Its first element in that tensor.
  std::int64_t begin_in_files() const { return row * numel(); }
};

}  // namespace zs::unit
