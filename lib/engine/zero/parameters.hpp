// SPDX-License-Identifier: Apache-2.0
// The parameters of one unit for forward and backward: whole, or a slice that is gathered temporarily, and that may be
// offloaded in between.
#pragma once
#include <optional>
#include <vector>

#include "zero/encoding.hpp"
#include "zero/layout.hpp"
#include "zero/offloadable.hpp"
#include "zero/packed.hpp"
#include "zero/pool.hpp"

namespace zs::zero {

/// The places of parameters besides the device's own memory.
struct Places {
  Residency shards{};              ///< for the slices of sharded parameters
  Pool* secondary = nullptr;       ///< for the secondary partition, within its group of ranks, or null
  Workspace* workspace = nullptr;  ///< for what is held in 4 bits; null: nothing is
};

class Parameters {
 public:
  /// COLLECTIVE: takes permanent memory from the pool. Does not set values.
  Parameters(const unit::Unit& unit, comm::Group& group, Pool& pool, const Layout& layout, const Places& places = {});

  /// Sets what this rank keeps (Layout::kept()), concatenated, from float32 on any device.
  void set(const at::Tensor& values);
  /// The owned part has other values than before.
  void changed() {
    if (encoding_) encoding_->changed();
  }
  /// The part that this rank owns, in permanent memory. REQUIRES: shard() is in device memory.
  device::View owned() const;
  /// The matrices that are held in 4 bits.
  Packed& packed() { return packed_; }
  /// All frozen parameters, as float32 on the group's device. COLLECTIVE.
  at::Tensor frozen();
  /// The slices, if they can be moved; null if they stay in device memory.
  OffloadableBuffer* shard() { return offloadable_ ? &*offloadable_ : nullptr; }
  /// The parameters for computing, as float32[numel]: the whole copy if this rank keeps one (stages 0 to 2), else
  /// gathered, with the rounding of the collective. On the group's device, or on the host if they are rounded.
  /// COLLECTIVE.
  at::Tensor whole();
  /// Starts and finishes the all-gather; loads the slice first if it is offloaded. COLLECTIVE.
  void start_gather();
  /// The same in two parts, for a collective of several units: the operands (none if this rank has all), and its work.
  std::vector<comm::Gathered> ready_to_gather();
  void is_gathered_by(std::shared_ptr<comm::Pending> work) { gather_ = std::move(work); }
  /// The same from the secondary partition. REQUIRES: partition().
  void start_gather_secondary();
  void finish_gather();
  /// Keeps this rank's share of the gathered parameters in the secondary partition.
  void partition();
  /// Throws zs::Error if quantized gathered parameters differ from the exact ones by more than rounding allows; it
  /// names unit and element. REQUIRES: gathered, from the first partition. COLLECTIVE.
  void self_test();
  /// Makes the next gather send a wrong scale, once. REQUIRES: quantized gathers.
  void plant_scale() { encoding_->plant_scale(); }
  /// Drops the gathered parameters (stage 3); accessing them from here on faults.
  void release();
  /// Drops the shard; gives it memory again, without values: whether it had none. REQUIRES: it stays in device memory.
  void drop_shard() { slice_.reset(); }
  bool take_shard();
  /// Tensors of the layout's type in the unit's order, leaves of the autograd graph if they are trained; separate
  /// tensors for each chunk of a micro-batch, over the same memory.
  const std::vector<at::Tensor>& leaves(int chunk = 0) const { return leaves_[static_cast<std::size_t>(chunk)]; }
  /// More leaves over the same memory, for the unit that is tied to them (a tied head).
  const std::vector<at::Tensor>& tied(int chunk = 0) const { return tied_[static_cast<std::size_t>(chunk)]; }

 private:
  std::string name_;
  comm::Group* group_;
  Pool *pool_, *secondary_pool_;
  Layout layout_;
  at::Tensor flat_;                               // its memory changes if sharded
  device::Buffer whole_, slice_, pending_whole_;  // slice_ if sharded, whole_ if not sharded or gathered
  device::Buffer secondary_;                      // this rank's share of it, in its group
  std::unique_ptr<Encoding> encoding_;            // of gathers
  device::Buffer encoded_;
  Packed packed_;
  std::vector<std::vector<at::Tensor>> leaves_, tied_;  // by chunk
  std::shared_ptr<comm::Pending> gather_;
  std::optional<OffloadableBuffer> offloadable_;  // instead of slice_
  bool loaded_to_gather_ = false;                 // it was in the store

  bool sharded() const { return layout_.divided.parameters; }
  /// This rank's slice of the trained, or of the frozen elements, in place.
  device::View slice(bool frozen) const;
  device::View shard_memory() const;
  at::Tensor gathered(bool frozen) const;
  device::View encoded() const { return encoded_.view(device::Type::byte, encoding_->bytes()); }
  device::View secondary() const;
  device::View view(const device::Buffer& buffer) const { return buffer.view(layout_.type, layout_.dense()); }
  /// The trained, or the frozen part of a whole buffer.
  device::View part(const device::Buffer& buffer, bool frozen) const;
};

}  // namespace zs::zero
