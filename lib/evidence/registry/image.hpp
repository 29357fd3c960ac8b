// SPDX-License-Identifier: Apache-2.0
// The file .runs.index: the table of runs in this machine's byte order, with a checksum.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "registry/runs.hpp"

namespace zs::registry {

/// Identifies a file and its content.
struct Stamp {
  std::int64_t size = 0, time = 0;  ///< bytes; ns
  std::uint64_t inode = 0;
  bool operator==(const Stamp&) const = default;
};

struct Image {
  bool found = false;  ///< the file exists
  Runs runs;
  Stamp csv;                   ///< the runs.csv that was last written
  std::uint64_t csv_hash = 0;  ///< XXH3 of its content
};

/// Reads an image; returns an empty one if the file is missing, damaged, no regular file, of another version or byte
/// order, or not owned by one of `trusted`: other users could have put anything into it.
Image read_image(const std::string& path, std::span<const uid_t> trusted);

/// The content of such a file.
std::string image_bytes(const Runs& runs, const Stamp& csv, std::uint64_t csv_hash);

/// XXH3 of `bytes`.
std::uint64_t hash(std::string_view bytes);

}  // namespace zs::registry
