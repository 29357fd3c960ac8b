// SPDX-License-Identifier: Apache-2.0
#include "plan/memory.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/memory_curve.hpp"
#include "plan/offload.hpp"
#include "plan/profile.hpp"

namespace zs::plan {
namespace {

constexpr double kFloat = 4;

/// Buffers by size, as a pool keeps them.
class Buffers {
 public:
  void take(double bytes) {
    Size& size = sizes_[bytes];
    size.most = std::max(size.most, ++size.lent);
    lent_ += bytes;
  }
  void give_back(double bytes) {
    --sizes_[bytes].lent;
    lent_ -= bytes;
  }
  double lent() const { return lent_; }
  double bytes() const {
    double sum = 0;
    for (const auto& [bytes, size] : sizes_) sum += bytes * size.most;
    return sum;
  }

 private:
  struct Size {
    int lent = 0, most = 0;
  };
  std::map<double, Size> sizes_;
  double lent_ = 0;
};

/// The memory of one unit's gradient.
struct Gradient {
  double memory = 0;         ///< bytes of the present leaf, or of its reduced result; 0: none
  double reduced = 0;        ///< bytes of the output of a reduction in flight
  double whole = 0;          ///< what it is gathered into, where there is a shard of it alone
  int added = 0, taken = 0;  ///< micro-steps added to the tree; partial sums ever taken for it
};

/// Runs a plan on the sizes of its buffers.
class Ledger {
 public:
  /// With `profile` activations are counted too, and buffers as a GPU's allocator lends them: to anyone.
  Ledger(const Plan& plan, int bytes_per_parameter, const Profile* profile = nullptr)
      : shape_(plan.shape),
        bytes_(bytes_per_parameter),
        profile_(profile),
        activations_(plan.shape.units.size()),
        gradients_(plan.shape.units.size()) {
    const bool shards_move = shape_.offload_parameters ||
                             std::ranges::any_of(plan.ops, [](const Op& op) { return op.kind == Kind::store_shard; });
    for (std::size_t i = 0; i < shape_.units.size(); ++i) {
      const Unit& unit = shape_.units[i];
      divided_.push_back(divided_in_memory(shape_.of(unit), shards_move));
      const auto numel = static_cast<double>(unit.numel);
      const bool divided = divided_[i].parameters;
      if (!divided) pool_.take(held(unit));
      if (divided && !shape_.offload_parameters) pool_.take(slice(unit));
      if (divided) largest_shard_ = std::max(largest_shard_, slice(unit));
      if (shape_.secondary > 0) lasting_ += numel / shape_.secondary * bytes_;
      if (!shape_.offloads(unit)) lasting_ += state(static_cast<int>(i));
    }
    lasting_ += workspace_bytes(shape_, bytes_per_parameter);
    for (std::size_t at = 0; at < plan.ops.size(); ++at) {
      const Op& op = plan.ops[at];
      if (shard_gives_way(plan, at, bytes_per_parameter)) {
        pool_.give_back(slice(shape_.units[static_cast<std::size_t>(op.unit)]));
        given_way_.push_back(op.unit);
      }
      run(op);
      if (profile_) follow(op);
    }
  }

  double bytes() const { return lasting() + pool_.bytes(); }
  /// The most at one time. REQUIRES: a profile.
  double peak() const { return lasting() + peak_; }

 private:
  const Shape& shape_;
  double bytes_;
  const Profile* profile_;
  std::vector<double> activations_;  // by unit, from forward to backward
  double kept_ = 0, peak_ = 0;       // of all units; the peak includes memory that the pool has lent
  Buffers pool_;
  double lasting_ = 0, largest_state_ = 0, largest_shard_ = 0;
  int shards_ = 0, most_shards_ = 0;  // that are loaded
  std::vector<Division> divided_;     // by unit
  Division divided_by_stage_ = shape_.divided();
  std::vector<Gradient> gradients_;
  std::vector<tree::Partials> trees_;  // by rank; one where all have the same
  std::vector<int> partial_sums_;      // by micro-step

  double lasting() const {
    return lasting_ + (offloaded_share(shape_) > 0 ? largest_state_ : 0) + most_shards_ * largest_shard_;
  }

  /// Activations of forward stay until its backward has run.
  void follow(const Op& op) {
    const auto keep = [&](double bytes) { activations_[static_cast<std::size_t>(op.unit)] += bytes, kept_ += bytes; };
    const bool leaves = computes(op.kind) && op.kind != Kind::backward;
    if (leaves && op.unit >= first_trained(shape_)) keep(profile_->left_by(op.kind, op.unit));
    peak_ = std::max(peak_, kept_ + pool_.lent());
    if (op.kind == Kind::backward) keep(-activations_[static_cast<std::size_t>(op.unit)]);
  }

  /// Bytes of a unit's optimizer state.
  double state(int unit) const { return optimizer_bytes(shape_, unit, static_cast<int>(bytes_)); }
  /// Elements of a unit's gradient that are kept between the micro-steps.
  double kept(const Unit& unit) const {
    return share(static_cast<double>(unit.trained()), divided(unit).gradients, ranks(unit));
  }
  /// Bytes of its parameters, and of a rank's part.
  double held(const Unit& unit) const { return held_bytes(unit, static_cast<int>(bytes_)); }
  double slice(const Unit& unit) const { return held(unit) / ranks(unit); }
  /// Ranks that divide its state.
  double ranks(const Unit& unit) const { return shape_.ranks / static_cast<double>(unit.among); }
  const Division& divided(const Unit& unit) const {
    return divided_[static_cast<std::size_t>(&unit - shape_.units.data())];
  }

  void load_shard() {
    if (shape_.offload_parameters) most_shards_ = std::max(most_shards_, ++shards_);
  }
  void drop_shard() {
    if (shape_.offload_parameters) --shards_;
  }
  /// Its gradient's memory is another's, or none.
  void set(Gradient& gradient, double bytes) {
    if (gradient.memory > 0) pool_.give_back(gradient.memory);
    gradient.memory = bytes;
  }

  void run(const Op& op) {
    if (op.unit < 0) return;
    const auto index = static_cast<std::size_t>(op.unit);
    const Unit& unit = shape_.units[index];
    const double encoded = op.kind == Kind::gather || op.kind == Kind::gather_wait ? encoded_bytes(unit, shape_) : 0;
    switch (op.kind) {
      case Kind::gather:
        if (divided(unit).parameters) load_shard(), pool_.take(held(unit));
        // An encoded buffer is freed when it has arrived: no two units travel in one such buffer.
        if (encoded > 0) pool_.take(encoded), encoded_.push_back(op.unit);
        return;
      case Kind::gather_secondary:
        return pool_.take(held(unit));
      case Kind::gather_wait:
        if (divided(unit).parameters && !from_secondary(index)) drop_shard();
        if (std::erase(encoded_, op.unit) > 0) pool_.give_back(encoded);
        return;
      case Kind::partition:
        partitioned_.push_back(op.unit);
        return;
      case Kind::release:
        if (divided(unit).parameters) pool_.give_back(held(unit));
        return;
      case Kind::backward:
        begin(index);
        if (unit.tied_to >= 0) begin(static_cast<std::size_t>(unit.tied_to));
        return;
      case Kind::accumulate:
        return accumulate(gradients_[index], kept(unit));
      case Kind::reduce:
        return reduce(gradients_[index], unit, op.micro);
      case Kind::reduce_wait:
        return finish_reduce(gradients_[index], unit);
      case Kind::gather_grad:
        if (!divided(unit).gradients) return;
        gradients_[index].whole = static_cast<double>(unit.trained()) * kFloat;
        return pool_.take(gradients_[index].whole);
      case Kind::step:
        if (std::erase(given_way_, op.unit) > 0) pool_.take(slice(unit));
        return step(gradients_[index], unit);
      case Kind::store:
        // A buffer for offloaded state has room for any that moves.
        largest_state_ = std::max(largest_state_, state(op.unit));
        return;
      case Kind::store_shard:
        return drop_shard();
      default:
        return;
    }
  }

  std::vector<int> encoded_, partitioned_, given_way_;
  bool from_secondary(std::size_t unit) const {
    return std::find(partitioned_.begin(), partitioned_.end(), static_cast<int>(unit)) != partitioned_.end();
  }

  void begin(std::size_t index) {
    Gradient& gradient = gradients_[index];
    if (gradient.memory > 0 || shape_.units[index].trained() == 0) return;
    // Of divided experts each rank has a leaf.
    gradient.memory = static_cast<double>(shape_.units[index].trained()) * shape_.units[index].among * bytes_;
    pool_.take(gradient.memory);
  }

  /// The most partial sums of a rank in any of its first `micro_steps`, as device::TreeAccumulator keeps them.
  int partial_sums(int micro_steps) {
    for (auto micro = static_cast<int>(partial_sums_.size()); micro < micro_steps; ++micro) {
      int most = partial_sums_.empty() ? 0 : partial_sums_.back();
      const int ranks = divided_by_stage_.gradients ? 1 : shape_.ranks;
      if (trees_.empty()) trees_.assign(static_cast<std::size_t>(ranks), tree::Partials(shape_.leaves()));
      for (int rank = 0; rank < ranks; ++rank) {
        tree::Partials& partials = trees_[static_cast<std::size_t>(rank)];
        for (const tree::Leaves& node : added(rank, micro)) partials.add(node);
        most = std::max(most, static_cast<int>(partials.nodes().size()));
      }
      partial_sums_.push_back(most);
    }
    return partial_sums_[static_cast<std::size_t>(micro_steps) - 1];
  }
  /// The terms that a rank adds after a micro-step: its leaf, or the sums of the ranks' leaves, the same on all.
  std::vector<tree::Leaves> added(int rank, int micro) const {
    if (divided_by_stage_.gradients) return addends(shape_, micro).sums;
    const std::int64_t at = leaf(shape_, rank, micro);
    return at < 0 ? std::vector<tree::Leaves>{} : tree::nodes({at, at + shape_.chunks_of_rank()}, shape_.leaves());
  }

  void accumulate(Gradient& gradient, double numel) {
    if (shape_.micro_steps == 1) return;
    const int wanted = partial_sums(++gradient.added);
    for (; gradient.taken < wanted; ++gradient.taken) pool_.take(numel * kFloat);
    set(gradient, 0);
  }

  void reduce(Gradient& gradient, const Unit& unit, int micro) {
    const bool is_float = bytes_ == kFloat || (micro < 0 && shape_.micro_steps > 1);
    // The one leaf of one rank is widened by the norm and the update themselves.
    if (profile_ && shape_.ranks == 1 && !is_float && !shape_.quantized_gradients) return;
    if (!is_float || divided(unit).gradients) {
      const auto sums = static_cast<double>(micro < 0 ? 1 : addends(shape_, micro).sums.size());
      gradient.reduced =
          share(static_cast<double>(unit.trained()), divided(unit).optimizer_state, ranks(unit)) * kFloat * sums;
      pool_.take(gradient.reduced);
    }
    if (shape_.quantized_gradients)
      pool_.take(codec_bytes(unit.trained(), 4)), pool_.take(codec_bytes(unit.trained(), 4));
  }
  void finish_reduce(Gradient& gradient, const Unit& unit) {
    if (shape_.quantized_gradients) {
      const double decoded = static_cast<double>(unit.trained()) * kFloat;
      pool_.take(decoded), pool_.give_back(decoded);
      pool_.give_back(codec_bytes(unit.trained(), 4)), pool_.give_back(codec_bytes(unit.trained(), 4));
    }
    if (gradient.reduced > 0) set(gradient, std::exchange(gradient.reduced, 0));
  }
  void step(Gradient& gradient, const Unit& unit) {
    load_shard();
    if (!unit.matrices.empty()) {
      const double directions = static_cast<double>(unit.trained()) * kDirectionBytes;
      pool_.take(directions), pool_.give_back(directions);
    }
    set(gradient, 0);
    if (gradient.whole > 0) pool_.give_back(gradient.whole);
    for (; gradient.taken > 0; --gradient.taken) pool_.give_back(kept(unit) * kFloat);
    gradient = {};
  }
};

}  // namespace

bool shard_gives_way(const Plan& plan, std::size_t at, int bytes_per_parameter) {
  const Op& op = plan.ops[at];
  const Shape& shape = plan.shape;
  if (op.kind != Kind::reduce || op.micro + 1 < shape.micro_steps || bytes_per_parameter == kFloat) return false;
  const Unit& unit = unit_of(op, shape);
  const auto moves = [](const Op& op) { return op.kind == Kind::store_shard || op.kind == Kind::load_shard; };
  if (!shape.divided().parameters || unit.frozen > 0 || unit.among > 1 || shape.secondary > 0 ||
      shape.offload_parameters || std::ranges::any_of(plan.ops, moves))
    return false;
  return std::none_of(plan.ops.begin() + static_cast<std::ptrdiff_t>(at), plan.ops.end(),
                      [&](const Op& later) { return later.unit == op.unit && later.kind == Kind::gather; });
}

double kept_bytes(const Plan& plan, int bytes_per_parameter) { return Ledger(plan, bytes_per_parameter).bytes(); }

double peak_bytes(const Plan& plan, const Profile& profile) {
  return Ledger(plan, profile.bytes_per_parameter, &profile).peak();
}

double activation_bytes(const Profile& profile, bool checkpointing) {
  double sum = 0, largest = 0;
  const int units = static_cast<int>(profile.shape.units.size());
  for (int unit = 0; unit < units; ++unit) {
    const Timing* const whole = profile.find(Kind::forward, unit);
    const Timing* const light = profile.find(Kind::forward_no_grad, unit);
    const Timing* const again = profile.find(Kind::recompute, unit);
    const Timing* const kept = checkpointing && light ? light : whole;
    if (!kept || (checkpointing && !light && unit + 1 < units)) return -1;
    sum += std::max(0.0, kept->growth);
    if (checkpointing && again) largest = std::max(largest, again->growth);
  }
  return sum + largest;
}

}  // namespace zs::plan
