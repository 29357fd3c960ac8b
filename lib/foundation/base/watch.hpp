// SPDX-License-Identifier: Apache-2.0
// A callback for how much of its files this process has read: for a progress line.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace zs {

/// Called after each read of a file on disk: its name, bytes read so far, and its size, both as on disk. At the end of
/// the file the two are equal. Called by the thread that reads.
using ReadWatcher = std::function<void(const std::string& name, std::int64_t read, std::int64_t size)>;

/// Sets the callback; empty: none. REQUIRES: no thread reads.
void watch_reading(ReadWatcher watcher);

}  // namespace zs
