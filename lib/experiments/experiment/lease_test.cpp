// SPDX-License-Identifier: Apache-2.0
#include "experiment/lease.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "base/host.hpp"
#include "registry/run.hpp"

namespace zs::experiment {
namespace {

std::string error_of(const std::string& folder, bool take_over) {
  try {
    const Lease lease(folder, take_over);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void owned_by(const std::string& folder, const registry::Fields& fields) {
  std::filesystem::create_directory(folder + "/.owner");
  write_file(folder + "/.owner/1", registry::record_text(fields));
}

TEST_CASE("lease: nobody holds a new run, one process at a time a begun one, nobody one that was given back") {
  const TemporaryFolder folder;
  CHECK(holder(folder.path()).fields.empty());
  {
    const Lease lease(folder.path(), false);
    lease.check();
    CHECK(holder(folder.path()).live);
    // Not even when told to: that one would go on writing until it looks.
    for (const bool take_over : {false, true})
      CHECK(error_of(folder.path(), take_over).find("is being trained by process " + std::to_string(::getpid())) !=
            std::string::npos);
  }
  CHECK(holder(folder.path()).fields.empty());
  CHECK(error_of(folder.path(), false).empty());
}

TEST_CASE("lease: of a process of this host that is gone, it is taken; of another host only when told to") {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  owned_by(folder.path(), {{"host", host_name()}, {"process", std::to_string(child) + ":1"}});
  CHECK(!holder(folder.path()).live);
  CHECK(error_of(folder.path(), false).empty());

  const TemporaryFolder other;
  owned_by(other.path(), {{"host", "no-such-host"}, {"process", "1:1"}});
  CHECK(error_of(other.path(), false).find("if it is over, continue with --take_over") != std::string::npos);
  CHECK(error_of(other.path(), true).empty());
}

TEST_CASE("lease: whoever was taken over, or whose run was removed, sees it") {
  const TemporaryFolder folder;
  const Lease lease(folder.path(), false);
  CHECK(lease.held());
  write_file(folder.path() + "/.owner/2", registry::record_text({{"host", "no-such-host"}, {"process", "7:1"}}));
  CHECK(!lease.held());
  CHECK_THROWS_WITH_AS(lease.check(), doctest::Contains("was taken over by process 7 on no-such-host"), Error);
  std::filesystem::remove(folder.path() + "/.owner/2");
  std::filesystem::remove(folder.path() + "/.owner/1");
  CHECK_THROWS_WITH_AS(lease.check(), doctest::Contains("was removed"), Error);
}

TEST_CASE("lease: of many that want it at once, one gets it, and an owner file that is no file keeps none waiting") {
  const TemporaryFolder folder;
  owned_by(folder.path(), {{"host", host_name()}, {"process", "999999999:1"}});
  std::atomic<int> winners = 0;
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Lease>> leases(16);
  for (auto& lease : leases) {
    threads.emplace_back([&] {
      try {
        lease = std::make_unique<Lease>(folder.path(), false);
        ++winners;
      } catch (const Error&) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(winners == 1);

  const TemporaryFolder hostile;
  std::filesystem::create_directory(hostile.path() + "/.owner");
  std::filesystem::create_symlink("/dev/zero", hostile.path() + "/.owner/1");
  CHECK(holder(hostile.path()).live);  // whatever it is, it may be somebody
}

}  // namespace
}  // namespace zs::experiment
