// SPDX-License-Identifier: Apache-2.0
// Messages about a training in the kernel log of this host (dmesg): processes killed for lack of memory, and errors of
// NVIDIA's driver (Xid). Formats: mm/oom_kill.c of Linux; NVIDIA's "Xid Errors".
#pragma once
#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"

namespace zs::recording {

/// A process of the training, which may have ended.
struct Member {
  std::string name;  ///< the kernel's, at most 15 letters
  int rank = -1;     ///< -1: unknown
};
using Members = std::map<pid_t, Member>;

/// Adds the new ones of `processes`, as far as /proc shows them.
void add_members(const std::vector<pid_t>& processes, Members& members);

/// Explains a line of the log about these processes, or a GPU; "" if it is about neither. Process ids in a container
/// differ from the kernel's: a process with the name of a member may be it, and is reported with its own id.
std::string explain_kernel_line(std::string_view line, const Members& members);

class KernelLog {
 public:
  /// Reads from now on. The log is $ZS_KERNEL_LOG, else /dev/kmsg; an unreadable log counts as empty.
  KernelLog();

  /// All messages about these so far, joined by "; ".
  std::string said(const Members& members);

 private:
  Descriptor file_;
  std::vector<std::string> lines_;  // possibly relevant ones
};

}  // namespace zs::recording
