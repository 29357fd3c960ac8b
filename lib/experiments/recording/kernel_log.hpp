// SPDX-License-Identifier: Apache-2.0
// What the kernel of this host says of a training in the log that dmesg prints: which processes it has killed for want
// of memory, and which errors NVIDIA's driver has met (Xid). Forms: mm/oom_kill.c of Linux; NVIDIA's "Xid Errors".
#pragma once
#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zs::recording {

/// A process of the training, which may have ended.
struct Member {
  std::string name;  ///< the kernel's, of 15 letters at most
  int rank = -1;     ///< -1: not told
};
using Members = std::map<pid_t, Member>;

/// Adds those of `processes` that are not there yet, as far as /proc tells.
void add_members(const std::vector<pid_t>& processes, Members& members);

/// What a line of the log says of these processes, or of a GPU; "" where it says nothing. A container's numbers of
/// processes are not the kernel's: one that has the name of a member may be it, and is told with its own number.
std::string explain_kernel_line(std::string_view line, const Members& members);

class KernelLog {
 public:
  /// From now on. The log is $ZS_KERNEL_LOG, else /dev/kmsg; one that cannot be read says nothing.
  KernelLog();
  ~KernelLog();
  KernelLog(const KernelLog&) = delete;
  KernelLog& operator=(const KernelLog&) = delete;

  /// All that it has said of these so far, joined by "; ".
  std::string said(const Members& members);

 private:
  int file_ = -1;
  std::vector<std::string> lines_;  // that may say something
};

}  // namespace zs::recording
