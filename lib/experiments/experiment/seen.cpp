// SPDX-License-Identifier: Apache-2.0
#include "experiment/seen.hpp"

#include <sys/stat.h>

#include <chrono>

namespace zs::experiment {
namespace {

/// ns; a file system stamps its files with a clock that ticks each 1 to 10 ms. The stamp does not show a second write
/// in one tick, so a file with a very recent stamp is read again.
constexpr std::int64_t kTick = 20'000'000;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Seen::Entry& Seen::entry(const std::string& folder, bool anew) {
  Entry& entry = runs_[folder];
  struct stat found {};
  const bool there = ::lstat((folder + "/metrics.h5").c_str(), &found) == 0;
  const std::int64_t bytes = there ? found.st_size : 0;
  const std::int64_t changed = there ? found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec : 0;
  if (!anew && entry.settled && entry.bytes == bytes && entry.changed == changed) return entry;
  entry = {.bytes = bytes, .changed = changed, .settled = !there || now() - changed > kTick, .most = most_};
  if (!there) return entry;
  ++reads_;
  try {
    const metric::Run run = metrics_of(folder);
    entry.progress = progress_of(run);
    entry.curve = report::curve_of(run, most_);
  } catch (const std::exception& error) {
    entry.progress.fault = error.what();
  }
  return entry;
}

const Progress& Seen::progress(const std::string& folder) { return entry(folder).progress; }

const report::Curve* Seen::curve(const std::string& folder, std::size_t most) {
  most_ = most;
  const auto before = runs_.find(folder);
  const bool thinned = before != runs_.end() && before->second.curve && !report::fits(*before->second.curve, most);
  const Entry& found = entry(folder, thinned);
  return found.curve ? &*found.curve : nullptr;
}

void Seen::tell(const FaultSink& faults) {
  for (auto& [folder, entry] : runs_) {
    if (entry.progress.fault.empty() || entry.progress.known || entry.told) continue;
    entry.told = true;
    faults({folder + "/metrics.h5", 0, entry.progress.fault});
  }
}

}  // namespace zs::experiment
