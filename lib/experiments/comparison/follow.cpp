// SPDX-License-Identifier: Apache-2.0
#include "comparison/follow.hpp"

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/number.hpp"
#include "input/kind.hpp"
#include "rollout/recording.hpp"

namespace zs::comparison {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Bytes of all files.
std::uintmax_t size_of(const std::string& folder) {
  std::uintmax_t size = 0;
  std::error_code ignored;
  for (const fs::path& file : files_below(folder)) {
    const std::uintmax_t bytes = fs::file_size(file, ignored);
    if (!ignored) size += bytes;
  }
  return size;
}

probe::Live begun(const Follow& request) {
  if (!input::is(request.reference, input::Kind::probe))
    throw Error(request.reference, 0, "is no recording of zs_probe or zs-train: --follow compares with one");
  return {request.reference, request.live, request.tolerance, request.floor};
}

/// `live` reads what is added, and answers.
template <class Growth>
probe::Answer watch(const Follow& request, Growth& live, const std::function<void(std::int64_t)>& told) {
  bool compared = false, behind = false;
  std::string trouble;
  std::uintmax_t seen = 0;
  auto changed = Clock::now();
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(200))) {
    const std::uintmax_t size = size_of(request.live);
    const bool waits = std::chrono::duration<double>(Clock::now() - changed).count() < request.patience;
    if (size == seen && waits && !behind) continue;
    if (size == seen && !waits) {
      if (!compared) throw Error(request.live, 0, trouble.empty() ? "nothing is recorded there" : trouble);
      probe::Answer last = live.answer();
      last.lines.emplace_back("followed", "nothing was added for " + to_rounded_text(request.patience, 4) + " seconds");
      return last;
    }
    if (size != seen) changed = Clock::now();
    seen = size, behind = false;
    if (!input::is(request.live, input::Kind::probe) && !input::is(request.live, input::Kind::rollout)) continue;
    try {
      const probe::Live::Seen now = live.grow();
      compared = true, behind = now.behind;
      told(now.steps);
      if (now.apart || now.ended) return live.answer();
    } catch (const Error& error) {  // a rank's file is missing so far; a damaged one is reported when nothing is added
      trouble = error.what();
    }
  }
}

}  // namespace

probe::Answer follow(const Follow& request, const std::function<void(std::int64_t)>& told) {
  if (request.reference.empty()) {
    rollout::LiveRecording live(request.live, request.floor);
    return watch(request, live, told);
  }
  probe::Live live = begun(request);
  if (!live.reference().ended())
    throw Error(request.reference, 0, "has no end: --follow needs a reference whose training has ended");
  return watch(request, live, told);
}

}  // namespace zs::comparison
