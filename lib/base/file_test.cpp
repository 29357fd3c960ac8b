// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "base/error.hpp"
#include "base/folder.hpp"

namespace zs {
namespace {

std::string text_of(const std::string& path) { return Input(path).read_all(); }

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

}  // namespace
}  // namespace zs
