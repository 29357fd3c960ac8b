// SPDX-License-Identifier: Apache-2.0
// Pieces of documents into rows of one length.
#pragma once
#include <cstdint>
#include <vector>

namespace zs::data {

/// How documents become samples. `whole` joins them, with the end of text between, and cuts the row of tokens into
/// samples; `none` begins a sample with each document, and pads it; `masked` puts several documents into a sample, each
/// whole where it is no longer, which do not see each other.
enum class Packing { none, whole, masked };
/// As options have it.
const char* name(Packing packing);

/// What becomes of a document that is longer than a sample.
enum class TooLong { split, cut, drop };

/// Tokens of one document: where its inputs begin, and how many targets it has.
struct Piece {
  std::int64_t begin, targets;
};

/// Which pieces lie in which row: of row i those from pieces[first[i]] on, up to pieces[first[i + 1]].
struct Rows {
  std::vector<Piece> pieces;
  std::vector<std::int64_t> first;
};

/// Rows of at most `length` inputs. The longest piece comes first, of equal ones the earlier; each goes into the row
/// with the least room that has enough, of equal ones the earlier, or into a new one (best-fit decreasing, which never
/// takes more than 11/9 of the fewest possible rows and 1). Then pieces are in the order of their documents in a row,
/// and rows in that of their first pieces. REQUIRES: no piece is longer.
Rows pack(std::vector<Piece> pieces, std::int64_t length);

}  // namespace zs::data
