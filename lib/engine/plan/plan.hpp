// SPDX-License-Identifier: Apache-2.0
// One training step as a list of operations over units. Every rank runs the same list; a stage is a function from
// (units, micro-steps) to it, and a pass a function from plan to plan. Knows no tensors.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/layout.hpp"
#include "plan/matrix.hpp"
#include "tree/tree.hpp"

namespace zs::plan {

/// The action of an operation on its unit. "start ... finish" pairs bracket a collective in flight.
enum class Kind {
  gather,            ///< start the all-gather of the unit's parameters
  gather_secondary,  ///< the same from the secondary partition, within the group of ranks that shares it
  gather_wait,       ///< finish either: the parameters are there
  partition,         ///< keep this rank's share of the secondary partition of the gathered parameters, until the step
  release,           ///< drop the gathered parameters, keep this rank's shard
  forward,           ///< forward of one micro-step, keeping what backward needs
  forward_no_grad,   ///< forward that keeps only its input (activation checkpointing)
  recompute,         ///< forward again from the kept input, now keeping what backward needs
  backward,          ///< backward of one micro-step into the unit's leaf gradient
  accumulate,        ///< add the present gradient to the sum over micro-steps: leaf (stages 0, 1), reduced shard (2, 3)
  reduce,            ///< start the reduce-scatter of the gradient
  reduce_wait,       ///< finish it
  gather_grad,       ///< start the all-gather of the reduced gradient (stage 0: with reduce it is an all-reduce)
  gather_grad_wait,
  norm,        ///< global gradient norm, clipping factor, overflow verdict; no unit
  step,        ///< optimizer update of this rank's part of the unit
  load,        ///< start to load the unit's offloaded optimizer state; step waits for it
  store,       ///< start to store it
  load_shard,  ///< start to load this rank's shard of the parameters; gather waits for it and drops it, step changes it
  store_shard,  ///< start to store the shard
  load_input,   ///< start to load the input for recompute, which waits for it
  store_input,  ///< start to store the kept input of a micro-step's forward
};

struct Op {
  Kind kind{};
  int unit = -1;   ///< index into Shape::units, -1 for norm
  int micro = -1;  ///< micro-step 0..A-1, or -1
  /// For a gather: it starts together with the next operation, also a gather, as one collective (coalesced).
  bool with_next = false;
  bool operator==(const Op&) const = default;
};

/// A unit in plans.
struct Unit {
  std::string name;
  std::int64_t numel = 0;  ///< parameters
  int tied_to = -1;        ///< another unit whose parameters its forward also reads (a tied head), or -1
  /// float32 numbers of optimizer state, besides the parameters; -1: two per parameter, as for AdamW.
  std::int64_t kept = -1;
  /// Its update orthogonalises these as a whole: `step` brings their directions, in bfloat16, to the owners and back.
  std::vector<Matrix> matrices{};
  std::int64_t frozen = 0;  ///< of numel: never updated, without a gradient
  std::int64_t idle = 0;    ///< of numel: a token does not meet them, of the experts that it is not sent to
  /// Bytes that a forward of a micro-batch moves from chunks of tokens to blocks of heads and back, summed over the
  /// ranks of a sequence; a backward moves the same number.
  std::int64_t exchanged = 0;
  /// Number of ranks that divide its experts. All sizes above are then sizes of one rank's part. Each rank computes its
  /// experts for the micro-batches of all of these ranks. A forward exchanges `exchanged` bytes of rows between them if
  /// experts get equal numbers of tokens.
  int among = 1;
  /// Its optimizer state stays in device memory while the state of other units is offloaded (plan/offload.hpp).
  bool stays = false;
  std::int64_t float8 = 0;  ///< of numel: weights of products of 8 bits
  int float8_scales = 0;    ///< of these, each for some of them

  /// Elements with a gradient and an update.
  std::int64_t trained() const { return numel - frozen; }
  double kept_numbers() const { return static_cast<double>(kept < 0 ? 2 * trained() : kept); }
};

/// The input of a plan.
struct Shape : Layout {
  std::vector<Unit> units{};  ///< in forward order; the last one computes the loss
  bool activation_checkpointing = false;
  bool keeps_attention = false;  ///< with it: the results of attention stay, and are not computed again
  /// Optimizer state is in device memory only during the update, but for units of which it stays. Otherwise it stays
  /// there between steps, and a pass may move it out for a part of a step.
  bool offload_optimizer = false;
  bool offload_parameters = false;  ///< the same for shards of parameters, which gathers use too (stage 3)
  /// Stage 3 (hpZ): after its first gather in a step, a unit is partitioned again within each group of this number of
  /// consecutive ranks, and later gathers stay in the group; 0: no such groups.
  int secondary = 0;
  bool quantized_weights = false;    ///< parameters are sent as 8 bits (stage 3; not from the secondary partition)
  bool float8_gathers = false;       ///< weights of 8-bit products are sent as 8 bits (stage 3; as above)
  bool quantized_gradients = false;  ///< gradients of micro-batches are sent as 4 bits (stage 3)

  /// Whether a unit's optimizer state is away between steps.
  bool offloads(const Unit& unit) const { return offload_optimizer && !unit.stays; }
  /// The step of a unit, without units: of one whose experts are divided, the ranks with the same experts take part,
  /// each with the micro-batches of all among which it is divided as leaves.
  Shape of(const Unit& unit) const;
};

/// The parts of a shape's model state of which a rank keeps only a slice in memory. On one rank there are none, except
/// parameters that come and go: they are partitioned twice or quantized, or, with `shards_move`, stored at times.
Division divided_in_memory(const Shape& shape, bool shards_move);

struct Plan {
  Shape shape;
  std::vector<Op> ops;
  std::vector<std::string> passes;     ///< those applied, in order
  std::vector<std::string> effects{};  ///< what each of them changed, for people
};

/// The first unit of which something is trained: backward ends with it. A unit of which nothing is has no operations of
/// gradients and updates. REQUIRES: there is one.
int first_trained(const Shape& shape);

/// The plan of a stage, nothing hidden, nothing early: the definition that passes must keep the meaning of.
Plan baseline(const Shape& shape);

/// The first of the chunks_of_rank() leaves of the summation tree that a rank computes in a micro-step, or -1 if it has
/// none there: where gradients are not divided neighbours in time, of all leaves the rank's slice; else neighbours in
/// rank.
std::int64_t leaf(const Shape& shape, int rank, int micro);
/// The ranks' terms in a reduction of a micro-step, or of the whole step (micro -1).
tree::Addends addends(const Shape& shape, int micro);

/// Throws zs::Error at the first operation that cannot run or would change the result: parameters used before they
/// are gathered or after they are released, a stale gather, a gradient reduced before its last contribution,
/// a unit stepped before the norm or twice, a collective left open, an unfinished micro-step.
void check(const Plan& plan);

/// "gather_wait h.0", "forward h.0 @1" for micro-step 1.
std::string to_text(const Op& op, const Plan& plan);
/// One line per operation: "12  gather_wait  h.0", micro-step after "@".
std::string to_text(const Plan& plan);

/// Number of collectives of a step; coalesced ones count as one.
std::int64_t collectives(const Plan& plan);
/// The number of these that overlap computation.
std::int64_t overlapped(const Plan& plan);

/// A hash of everything on which the ranks must agree.
std::uint64_t hash(const Plan& plan);

/// Bytes that each rank sends in one step under the plan, on average over ranks, with bandwidth-optimal collectives
/// ((N-1)/N of an operand).
///
/// With all A micro-steps and baseline plans, let P = bytes of the parameters and of a micro-batch's gradient, in their
/// type, and S = bytes of a sum of gradients, float32 (if A = 1, the first sum is the gradient itself, P):
///   stage 0 sends 2 S, stage 1 S + P, stage 2 A P + P, stage 3 A P + 2 A P.
/// Muon's steps also send directions to the owners of matrices and back, 2 bytes a number (plan/matrix.hpp).
/// With a secondary partition of K ranks stage 3 sends P + (2 A - 1) P' + A P; of P' it sends (K-1)/K, not (N-1)/N.
/// If a rank's micro-batches form several subtrees of the summation tree, it sends each: S counts once for each of
/// them, on average over ranks. Integers have one byte, or half a byte, a parameter and 4 bytes for each block of 128
/// (codec_bytes). Weights of 8-bit products may have one byte each (float8_bytes), and then 4 bytes for each of their
/// scales once a step. N ranks that share sequences send, in each forward and each backward of a unit with attention,
/// 1/N of Unit::exchanged times (N-1)/N.
double sent_bytes(const Plan& plan, int bytes_per_parameter);
/// The part of these bytes that goes to other nodes, if each node has `node` consecutive ranks.
double sent_between_nodes(const Plan& plan, int bytes_per_parameter, int node);
/// The same for one operation; 0 if it is not a collective.
double sent_bytes(const Op& op, const Shape& shape, int bytes_per_parameter);
double sent_between_nodes(const Op& op, const Shape& shape, int bytes_per_parameter, int node);
/// Bytes of an element of a matrix's direction, bfloat16 (Muon).
inline constexpr int kDirectionBytes = 2;
/// Bytes of a collective's whole operand, of which a rank sends its part; 0 for other operations.
double operand_bytes(const Op& op, const Shape& shape, int bytes_per_parameter);
/// The unit of an operation; of the norm one of nothing.
const Unit& unit_of(const Op& op, const Shape& shape);
/// The matrices of which a step brings directions from rank to rank.
std::span<const Matrix> sent_matrices(const Op& op, const Shape& shape);
/// Elements of that: of a gather behind an update, and of gradients, those that are trained.
std::int64_t operand(const Op& op, const Shape& shape);
/// The ranks of a collective: the group of a secondary partition, the ranks with the same experts, or all.
int ranks_of(const Op& op, const Shape& shape);
/// Whether a collective moves sums of gradients, which are float32 for any type of parameters.
bool moves_sums(const Op& op, const Shape& shape);
/// Bytes of `numel` numbers quantized to `bits` bits: 256 tiles of equal size, each with a float32 scale per 128
/// numbers, and the integers, in whole words of 4 bytes.
double codec_bytes(std::int64_t numel, int bits);
/// Bytes of a bfloat16 unit in which `float8` numbers are sent in 8 bits. All ranks count the largest number that one
/// rank may have: twice a slice if nothing in it is such a number.
std::int64_t float8_bytes(std::int64_t numel, std::int64_t float8, int ranks);
/// Bytes that a gather encodes a unit into; 0: it sends the parameters.
double encoded_bytes(const Unit& unit, const Shape& shape);

/// Moves each load of a shard that stands right before its gather ahead of the computation before it, to overlap the
/// two.
void load_early(Plan& plan);

/// Bytes of model state that each rank keeps in device memory (Rajbhandari et al. 2020, table
/// 1): parameters and gradients in their type, and in float32 the optimizer's `kept` numbers
/// (-1: two per parameter, AdamW's moments) and, for 16-bit parameters, the masters. Each is
/// divided from its stage on. Offloaded state is not counted: optimizer state, and the shards
/// of parameters in stage 3. If `secondary` ranks keep stage 3's parameters again, these count.
/// The `frozen` ones of the parameters have no gradients, masters and optimizer state.
double state_bytes(const Shape& shape, int bytes_per_parameter);
/// The same of `parameters` in one.
double state_bytes(double parameters, int stage, double ranks, int bytes_per_parameter, bool offload_optimizer = false,
                   bool offload_parameters = false, int secondary = 0, double kept = -1, double frozen = 0);
/// Sums over all units: parameters, frozen parameters, and the numbers that the optimizer keeps for them.
double numel(const Shape& shape);
double frozen(const Shape& shape);
/// The trained parameters.
double trained(const Shape& shape);
double kept_numbers(const Shape& shape);

/// The maximum of parameters (elements) gathered at one time besides this rank's shards. 0 below stage 3.
std::int64_t peak_gathered(const Plan& plan);

/// The part of a step of an operation.
enum class Part { forward, backward, update, offload, communication };
Part part_of(Kind kind);

/// True for forward, recompute and backward.
bool computes(Kind kind);
/// True for a gather from either partition.
bool gathers(Kind kind);
/// True for a kind that starts a collective, and the kind that finishes it.
bool starts(Kind kind);
Kind wait_of(Kind kind);

}  // namespace zs::plan
