// SPDX-License-Identifier: Apache-2.0
// Packs pieces of documents into rows of equal length.
#pragma once
#include <cstdint>
#include <vector>

namespace zs::data {

/// How documents become samples. `whole` joins them, with the end-of-text token between, and cuts the result into
/// samples; `none` begins a sample with each document, and pads it; `masked` puts several documents into a sample, each
/// complete if it fits, which do not see each other.
enum class Packing { none, whole, masked };
/// The name in options.
const char* name(Packing packing);

/// The treatment of a document that is longer than a sample.
enum class TooLong { split, cut, drop };

/// Tokens of one document: the position of its inputs, and its number of targets.
struct Piece {
  std::int64_t begin, targets;
};

/// The pieces of each row: row i has pieces[first[i]] up to pieces[first[i + 1]].
struct Rows {
  std::vector<Piece> pieces;
  std::vector<std::int64_t> first;
};

/// Rows of at most `length` inputs. The longest piece comes first, of equal ones the earlier; each goes into the row
/// with the least sufficient room, of equal ones the earlier, or into a new one (best-fit decreasing, which never needs
/// more than 11/9 of the minimal number of rows plus 1). Then pieces are sorted by document within a row, and rows by
/// their first pieces. REQUIRES: no piece is longer.
Rows pack(std::vector<Piece> pieces, std::int64_t length);

}  // namespace zs::data
