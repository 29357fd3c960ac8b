// SPDX-License-Identifier: Apache-2.0
// One training step as a list of operations over units. Every rank runs the same list; a stage is a function from
// (units, micro-steps) to it, and a pass a function from plan to plan. Knows no tensors.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "plan/bytes.hpp"
#include "plan/layout.hpp"
#include "plan/matrix.hpp"
#include "plan/op.hpp"
#include "plan/shape.hpp"
#include "plan/state_bytes.hpp"
#include "tree/tree.hpp"

namespace zs::plan {

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
/// Moves each load of a shard that stands right before its gather ahead of the computation before it, to overlap the
/// two.
void load_early(Plan& plan);

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
