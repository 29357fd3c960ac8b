// SPDX-License-Identifier: Apache-2.0
#include "recording/kernel_log.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

namespace zs::recording {
namespace {

const Members kTraining = {{4711, {"python3", 1}}, {4700, {"torchrun", -1}}};

TEST_CASE("processes that the kernel has killed for memory are told, in each form that Linux has had") {
  CHECK(explain_kernel_line("3,440,13100476961,-;Memory cgroup out of memory: Killed process 4711 (python3) "
                            "total-vm:112168kB, anon-rss:102016kB, file-rss:6672kB, shmem-rss:0kB, UID:0",
                            kTraining) ==
        "out of memory: the kernel killed rank 1 (process 4711, python3), which held 104.46 MB");
  CHECK(explain_kernel_line("[ 1843.3] Out of memory: Kill process 4700 (torchrun) score 987 or sacrifice child",
                            kTraining) == "out of memory: the kernel killed process 4700, torchrun");
  CHECK(explain_kernel_line("Out of memory: Killed process 99 (python3) total-vm:1kB, anon-rss:1000kB", kTraining) ==
        "out of memory: the kernel killed process 99, python3, by the host's numbers, which held 1.02 MB");
  CHECK(explain_kernel_line("Out of memory: Killed process 99 (firefox) total-vm:1kB", kTraining).empty());
  CHECK(explain_kernel_line("4,361,1,-;python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL)", kTraining).empty());
}

TEST_CASE("errors of NVIDIA's driver are told with their GPU, and with the rank where the driver knows the process") {
  CHECK(explain_kernel_line("4,9,1,-;NVRM: Xid (PCI:0000:44:00): 79, GPU has fallen off the bus.", kTraining) ==
        "GPU 0000:44:00 had Xid 79: GPU has fallen off the bus.");
  CHECK(explain_kernel_line("NVRM: Xid (PCI:0000:dc:00): 45, pid=4711, name=python3, Ch 00000001", kTraining) ==
        "GPU 0000:dc:00 had Xid 45 under rank 1 (process 4711, python3): Ch 00000001");
  CHECK(explain_kernel_line("NVRM: Xid (PCI:0000:dc:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen",
                            kTraining) == "GPU 0000:dc:00 had Xid 79: GPU has fallen");
  CHECK(explain_kernel_line("NVRM: Xid (PCI:0000:dc:00): 31, pid=7, name=vlc, MMU Fault", kTraining) ==
        "GPU 0000:dc:00 had Xid 31 under process 7, which is not of this training: MMU Fault");
}

TEST_CASE("a process is known by its name, and a rank's by its number") {
  Members members;
  add_members({::getpid(), 1 << 29}, members);
  CHECK(!members.at(::getpid()).name.empty());
  CHECK(members.count(1 << 29) == 0);
}

}  // namespace
}  // namespace zs::recording
