// SPDX-License-Identifier: Apache-2.0
// Temporary files: random names, and removal when a signal ends the process.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace zs {

/// 32 letters and digits that are not easily confused, in byte order.
inline constexpr std::string_view kClearLetters = "23456789abcdefghijkmnpqrstuvwxyz";

/// `count` random ones of these. Throws Error if the system has no random numbers.
std::string random_letters(int count);

/// Whether a file has a name that Temporary gives.
bool names_temporary(const std::string& name);

/// While the object lives, SIGINT, SIGTERM, SIGHUP and SIGPIPE remove the file or folder of that name and then end the
/// process, unless another handler is set. Only the process that made the object does so; a forked child does not. Does
/// nothing for a path that is too long and if all slots are in use.
class RemovedBySignal {
 public:
  explicit RemovedBySignal(const std::string& path);
  ~RemovedBySignal();
  RemovedBySignal(const RemovedBySignal&) = delete;
  RemovedBySignal& operator=(const RemovedBySignal&) = delete;

 private:
  int slot_ = -1;
};

/// A new file with a random name in the folder of `target` (".zs-tmp-XXXXXXXXXXXX"), open for writing: the name cannot
/// be guessed, no link is followed, and no process of any host has the same name. The file is removed with the object,
/// or by SIGINT, SIGTERM, SIGHUP or SIGPIPE, unless publish() was called. `mode` is as in open(2); `folder` is used
/// instead of the target's. Throws Error, which names the target.
class Temporary {
 public:
  explicit Temporary(const std::string& target, mode_t mode = 0666, const std::string& folder = "");
  ~Temporary();

  int file() const { return file_; }
  const std::string& path() const { return path_; }
  /// Syncs and closes the file and renames it to the target, which it replaces. Throws Error.
  void publish();

 private:
  std::string target_, path_;
  int file_ = -1;
  std::optional<RemovedBySignal> guard_;
};

}  // namespace zs
