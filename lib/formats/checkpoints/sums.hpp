// SPDX-License-Identifier: Apache-2.0
// The files of a checkpoint of zs, and their checksums in its SHA256SUMS, in sha256sum's format.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace zs::checkpoints {

inline constexpr const char* kSums = "SHA256SUMS";

/// Every regular file below `folder`, as paths relative to it, in order.
std::vector<std::string> files(const std::string& folder);

/// Whether a file of a checkpoint's folder is one that a reader of checkpoints reads; not a tokenizer or a README.
bool is_read(const std::string& file);

/// SHA256SUMS as path -> digest. Throws zs::Error if it is missing or malformed.
std::map<std::string, std::string> read_sums(const std::string& folder);

/// Faults, located: each file of the sums that is missing in the folder, and each of is_read() without a sum.
std::vector<std::string> unlike_sums(const std::string& folder, const std::map<std::string, std::string>& sums);

/// read_sums(). Throws zs::Error at the first of unlike_sums().
std::map<std::string, std::string> require_files(const std::string& folder);

/// Throws zs::Error, naming the file, if its content does not match the digest.
void require_sum(const std::string& folder, const std::string& file, const std::string& digest);

}  // namespace zs::checkpoints
