// SPDX-License-Identifier: Apache-2.0
// What is on the disk only for a while: files under random names, and what a signal has to take away with it.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace zs {

/// 32 letters and digits that cannot be mistaken for one another, in the order of their bytes.
inline constexpr std::string_view kClearLetters = "23456789abcdefghijkmnpqrstuvwxyz";

/// `count` of them at random. Throws Error where the system has no random numbers.
std::string random_letters(int count);

/// Whether a file's name is one that Temporary gives.
bool names_temporary(const std::string& name);

/// While the object lives, SIGINT, SIGTERM, SIGHUP and SIGPIPE remove the file or folder of that name before they end
/// the process, if nobody else handles them. The process that made the object does so, not one that it forked.
class RemovedBySignal {
 public:
  explicit RemovedBySignal(const std::string& path);
  ~RemovedBySignal();
  RemovedBySignal(const RemovedBySignal&) = delete;
  RemovedBySignal& operator=(const RemovedBySignal&) = delete;

 private:
  int slot_ = -1;
};

/// A new file under a random name in the folder of `target` (".zs-tmp-XXXXXXXXXXXX"), open for writing: nobody can know
/// the name before, no link is followed, and no process of any host has the same. It goes with the object, or by
/// SIGINT, SIGTERM, SIGHUP or SIGPIPE, unless publish() was called. `mode` is as in open(2); `folder` is where it
/// waits, if not beside the target. Throws Error, which names the target.
class Temporary {
 public:
  explicit Temporary(const std::string& target, mode_t mode = 0666, const std::string& folder = "");
  ~Temporary();
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  int file() const { return file_; }
  const std::string& path() const { return path_; }
  /// Syncs and closes the file, and gives it the name of the target in place of what has it. Throws Error.
  void publish();

 private:
  std::string target_, path_;
  int file_ = -1;
  std::optional<RemovedBySignal> guard_;
};

}  // namespace zs
