// SPDX-License-Identifier: Apache-2.0
// Who is told how far this process has read its files: for a line on a terminal.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace zs {

/// Told after each read of a file on disk: its name, the bytes read of it so far, and all it has, as they lie on disk.
/// At the end of the file both are the same. Called by whichever thread reads.
using ReadWatcher = std::function<void(const std::string& name, std::int64_t read, std::int64_t size)>;

/// Sets it; empty: nobody. REQUIRES: no thread reads.
void watch_reading(ReadWatcher watcher);

}  // namespace zs
