// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <vector>

#include "base/claim.hpp"
#include "base/error.hpp"
#include "base/folder.hpp"

namespace zs {
namespace {

std::string text_of(const std::string& path) { return Input(path).read_all(); }

TEST_CASE("folder: what cannot be listed is an error with its path; what is not there is empty") {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("loop", folder.file("loop"));
  CHECK_THROWS_WITH_AS(entries_of(folder.file("loop")),
                       (folder.file("loop") + ": cannot list the folder: Too many levels of symbolic links").c_str(),
                       Error);
  CHECK(entries_of(folder.file("none")).empty());
  CHECK(entries_of(folder.path()).size() == 1);
}

TEST_CASE("file: large and small writes keep their order, and a field may be replaced") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a", large(1 << 20, 'L');
  Output output(path);
  output.write("head ????");
  output.write(large);
  output.write("tail");
  output.rewrite(5, "1234");
  output.write("!");
  CHECK_FALSE(std::filesystem::exists(path));
  output.commit();
  CHECK(text_of(path) == "head 1234" + large + "tail!");
}

TEST_CASE("file: who watches is told how far a file is read, up to its end") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a";
  write_file(path, std::string(3 << 20, 'x'));
  std::vector<std::int64_t> told;
  watch_reading([&](const std::string& name, std::int64_t read, std::int64_t size) {
    CHECK(name == path);
    CHECK(size == 3 << 20);
    told.push_back(read);
  });
  text_of(path);
  watch_reading({});
  text_of(path);
  REQUIRE(told.size() > 2);
  CHECK(std::is_sorted(told.begin(), told.end()));
  CHECK(told.front() < 3 << 20);
  CHECK(told.back() == 3 << 20);
}

TEST_CASE("file: without commit the old file stays and nothing else") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a";
  write_file(path, "old");
  {
    Output output(path);
    output.write(std::string(1 << 20, 'x'));
  }
  CHECK(text_of(path) == "old");
  const std::filesystem::directory_iterator files(folder.path());
  CHECK(std::distance(begin(files), end(files)) == 1);
}

TEST_CASE("file: a device is written in place: large writes fail at once, a field cannot be replaced") {
  Output full("/dev/full");
  CHECK_THROWS_WITH(full.write(std::string(1 << 20, 'x')), "/dev/full: write: No space left on device");
  Output null("/dev/null");
  null.write("abc");
  CHECK_THROWS_WITH(null.rewrite(0, "x"), "/dev/null: cannot be written in place, name a regular file");
}

std::ptrdiff_t entries(const std::string& folder) {
  const std::filesystem::directory_iterator files(folder);
  return std::distance(begin(files), end(files));
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 0777;
}

TEST_CASE("file: a link is written through and stays; one that leads nowhere, and a read-only file, are refused") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("elsewhere"));
  write_file(folder.file("elsewhere/target"), "old");
  std::filesystem::create_symlink("elsewhere/target", folder.file("link"));
  write_file(folder.file("link"), "new");
  CHECK(std::filesystem::is_symlink(folder.file("link")));
  CHECK(text_of(folder.file("elsewhere/target")) == "new");
  CHECK(entries(folder.file("elsewhere")) == 1);
  std::filesystem::create_symlink("nothing", folder.file("broken"));
  CHECK_THROWS_WITH(write_file(folder.file("broken"), "x"), (folder.file("broken") + ": is a link to nothing").c_str());
  ::chmod(folder.file("elsewhere/target").c_str(), 0444);
  CHECK_THROWS_AS(write_file(folder.file("link"), "x"), Error);
  CHECK(text_of(folder.file("elsewhere/target")) == "new");
  CHECK_THROWS_AS(Output(""), Error);
}

TEST_CASE("file: a file keeps its mode; its name may be as long as names can be") {
  const TemporaryFolder folder;
  const std::string name = folder.file(std::string(255, 'n'));
  write_file(name, "a");
  ::chmod(name.c_str(), 0640);
  write_file(name, "b");
  CHECK(text_of(name) == "b");
  CHECK(mode_of(name) == 0640);
}

TEST_CASE("folder: the files below it are found at any depth, once each, and none of them through a link to a folder") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.file("b/deep/.hidden"));
  std::filesystem::create_directory(folder.file("empty"));
  for (const char* const name : {"c", "a", "b/deep/file", "b/deep/.hidden/in", ".dotted"})
    write_file(folder.file(name), "");
  std::filesystem::create_symlink("..", folder.file("b/above"));
  std::filesystem::create_symlink("nothing", folder.file("b/broken"));
  std::filesystem::create_symlink("a", folder.file("link"));
  const auto found = [&](bool hidden) {
    std::string names;
    for (const auto& file : files_below(folder.path(), hidden))
      names += file.lexically_relative(folder.path()).string() + " ";
    return names;
  };
  CHECK(found(true) == ".dotted a b/deep/.hidden/in b/deep/file c link ");
  CHECK(found(false) == "a b/deep/file c link ");
  CHECK(files_below(folder.file("nowhere")).empty());
  CHECK(files_below(folder.file("a")).empty());
}

TEST_CASE("file: two that are written at once under one name, by one process, do not meet") {
  const TemporaryFolder folder;
  Output first(folder.file("a")), second(folder.file("a"));
  first.write("first");
  second.write("second");
  first.commit();
  CHECK(text_of(folder.file("a")) == "first");
  second.commit();
  CHECK(text_of(folder.file("a")) == "second");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("file: a signal takes the temporaries of its process away, files and folders, and ends it") {
  const TemporaryFolder folder;
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    Output parents(folder.file("parents"));
    const pid_t child = ::fork();
    if (child == 0) {
      std::signal(signal, SIG_DFL);
      Output out(folder.file("out"));
      const TemporaryFolder inner;
      write_file(inner.file("x"), "x");
      ::raise(signal);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
    CHECK(entries(folder.path()) == 1);  // the parent's
  }
  ::unsetenv("TMPDIR");
}

TEST_CASE("file: an output that was replaced is no input's inode any more, though another file has it") {
  const TemporaryFolder folder;
  const std::string out = folder.path() + "/out", other = folder.path() + "/other";
  write_file(out, "old");
  claim_output(out, "--output");
  std::filesystem::create_hard_link(out, other);
  CHECK_THROWS_WITH_AS(text_of(other), doctest::Contains("other: is an input, and --output would write over it"),
                       Error);
  write_file(out, "new");
  CHECK(text_of(other) == "old");
}

TEST_CASE("file: what is no regular file of bounded size is refused at once, not waited for and not followed") {
  const TemporaryFolder folder;
  write_file(folder.file("a"), "12345");
  CHECK(read_regular(folder.file("a"), 5).bytes == "12345");
  CHECK_THROWS_WITH(read_regular(folder.file("a"), 4), (folder.file("a") + ": is larger than 4 bytes").c_str());
  ::mkfifo(folder.file("fifo").c_str(), 0666);
  CHECK_THROWS_WITH(read_regular(folder.file("fifo"), 5), (folder.file("fifo") + ": is not a regular file").c_str());
  std::filesystem::create_symlink("/dev/zero", folder.file("link"));
  CHECK_THROWS_WITH(read_regular(folder.file("link"), 5),
                    (folder.file("link") + ": is a link, expected a file").c_str());
  CHECK_THROWS_WITH(read_regular("/dev/zero", 5), "/dev/zero: is not a regular file");
  CHECK_THROWS_WITH(read_regular(folder.path(), 5), (folder.path() + ": is not a regular file").c_str());
}

}  // namespace
}  // namespace zs
