// SPDX-License-Identifier: Apache-2.0
// The files of a checkpoint of zs, and their checksums in its SHA256SUMS, as sha256sum writes them.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace zs::state {

/// Every regular file below `folder`, as paths relative to it, in order.
std::vector<std::string> files(const std::string& folder);

/// SHA256SUMS as path -> digest. Throws zs::Error where it is missing or malformed, at a file that it lists and the
/// folder lacks, and at one that it does not list and that a reader of checkpoints would take; a tokenizer or a README
/// is none.
std::map<std::string, std::string> read_sums(const std::string& folder);

/// Throws zs::Error, naming the file, if its content does not have the digest.
void require_sum(const std::string& folder, const std::string& file, const std::string& digest);

}  // namespace zs::state
