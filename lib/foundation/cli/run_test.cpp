// SPDX-License-Identifier: Apache-2.0
#include "cli/run.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.hpp"
#include "base/folder.hpp"
#include "base/mapped.hpp"

namespace zs::cli {
namespace {

/// The end of a process that runs `body` as a tool, and what it said to stderr, in `said`.
int ended(const TemporaryFolder& folder, const std::function<void()>& body, std::string& said) {
  const std::string path = folder.file("stderr");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    const Command command{"zs-x", "", "", {}, {}};
    std::string name = "zs-x";
    char* words[] = {name.data(), nullptr};
    ::_exit(run(command, 1, words, [&](const Args&) { return body(), Status::done; }));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  said = Input(path).read_all();
  return status;
}

TEST_CASE("run: a mapped file that is cut short while it is read is an error with its path") {
  const TemporaryFolder folder;
  const std::string path = folder.file("weights");
  write_file(path, std::string(1 << 16, 'x'));
  std::string said;
  const int status = ended(
      folder,
      [&] {
        const int file = ::open(path.c_str(), O_RDONLY);
        const auto* const bytes =
            static_cast<const volatile char*>(::mmap(nullptr, 1 << 16, PROT_READ, MAP_SHARED, file, 0));
        const MappedRange range(const_cast<const char*>(bytes), 1 << 16, path);
        std::filesystem::resize_file(path, 0);
        [[maybe_unused]] const char read = bytes[(1 << 16) - 1];
      },
      said);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 2);
  CHECK(said == "zs-x: " + path + ": was cut short by another program while it was read\n");
}

TEST_CASE("run: SIGBUS for any other reason ends the process as ever; so does none") {
  const TemporaryFolder folder;
  std::string said;
  const int status = ended(
      folder, [] { ::raise(SIGBUS), ::raise(SIGBUS); }, said);
  CHECK(WIFSIGNALED(status));
  CHECK(said.empty());
  const char byte = 0;
  CHECK(mapped_file(&byte) == nullptr);
}

}  // namespace
}  // namespace zs::cli
