// SPDX-License-Identifier: Apache-2.0
// The bytes that an operation sends.
#pragma once
#include <cstdint>
#include <span>

#include "plan/op.hpp"
#include "plan/shape.hpp"

namespace zs::plan {

/// Bytes that each rank sends for one operation, as sent_bytes() of a plan counts them; 0 if it is not a collective.
double sent_bytes(const Op& op, const Shape& shape, int bytes_per_parameter);
/// The part of these bytes that goes to other nodes, if each node has `node` consecutive ranks.
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

}  // namespace zs::plan
