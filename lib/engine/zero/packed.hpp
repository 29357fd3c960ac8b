// SPDX-License-Identifier: Apache-2.0
// A unit's matrices that are held in 4 bits (device/nf4.hpp). They are frozen, so their bytes never change; where
// parameters are divided, a rank keeps a slice of the bytes, and gathers bring the rest. While a unit computes, its
// matrices have the type of the other parameters, in memory that all units of a rank share.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "device/nf4.hpp"
#include "zero/layout.hpp"
#include "zero/pool.hpp"

namespace zs::zero {

/// Gives elements of a unit's flat buffer, from `begin` on.
using Fill = std::function<void(std::int64_t begin, std::span<float> values)>;

/// The memory in which one unit at a time has its matrices.
struct Workspace {
  device::Buffer memory{};
  at::Tensor holder{};  ///< the placeholder of that unit, or undefined
};

/// The bytes of a unit's matrices in 4 bits.
std::int64_t packed_bytes(const unit::Unit& unit);

class Packed {
 public:
  /// COLLECTIVE: takes permanent memory from the pool; enlarges the workspace if it is smaller than this unit needs.
  Packed(const unit::Unit& unit, comm::Group& group, Pool& pool, const Layout& layout, Workspace* workspace);

  bool empty() const { return matrices_.empty(); }
  /// The matrix of a parameter, by its index in the unit. It is valid from widen() until another unit's widen().
  at::Tensor view(std::size_t parameter) const;
  /// Sets all: to the bytes that `stored` has of a parameter, else to the numbers that `fill` gives, quantized. With
  /// `at_once` several threads call `fill`.
  void set(const Fill& fill, const std::function<bool(std::size_t parameter, std::span<std::byte> bytes)>& stored,
           bool at_once = false);
  /// The operands of a gather of the bytes, which is over when widen() is called; nothing if this rank has all.
  std::optional<comm::Gathered> ready_to_gather();
  /// Drops what was gathered.
  void release() { gathered_.reset(); }
  /// Widens the matrices in the workspace, if another unit's are there. REQUIRES: gathered.
  void widen();

  /// A parameter's bytes within bytes().
  struct Place {
    std::int64_t begin, count;
  };
  Place place(std::size_t parameter) const;
  /// The bytes of all matrices, on the host. COLLECTIVE.
  at::Tensor bytes();
  /// The numbers that are computed with, as float32 in the order of the flat buffer, on the group's device. COLLECTIVE.
  at::Tensor values();

 private:
  struct Matrix {
    std::size_t parameter;
    const unit::Parameter* is;
    device::Nf4 form;
    std::int64_t at;       // its first byte
    std::int64_t element;  // its first element in the workspace
  };
  std::string name_;
  comm::Group* group_;
  Pool* pool_;
  device::Type type_;
  bool divided_;
  Workspace* workspace_;
  std::vector<Matrix> matrices_;
  std::int64_t bytes_ = 0, elements_ = 0;
  at::Tensor flat_;                 // of the workspace
  device::Buffer held_, gathered_;  // the bytes, or this rank's slice of them; all of them

  const Matrix& matrix(std::size_t parameter) const;
  comm::Slice slice() const;
  device::View whole() const { return (divided_ ? gathered_ : held_).view(device::Type::byte, bytes_); }
  at::Tensor gather_bytes();
  void widen(const device::View& bytes, const device::View& numbers) const;
};

}  // namespace zs::zero
