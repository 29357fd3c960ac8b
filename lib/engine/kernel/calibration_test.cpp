// SPDX-License-Identifier: Apache-2.0
#include "kernel/calibration.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"

namespace zs::kernel {
namespace {

/// A cache of one's own for a test.
struct Cache {
  TemporaryFolder folder;
  Cache() { ::setenv("XDG_CACHE_HOME", folder.path().c_str(), 1); }
  ~Cache() { ::unsetenv("XDG_CACHE_HOME"); }
};

Calibration table() {
  return {
      "NVIDIA H200",
      "130100",
      {{"bfloat16", 7.9e14}, {"tf32", 3.5e14}},
      {{"bfloat16.N.8x16.8 bfloat16.T.4x16.4 float32.N.8x4.8", std::string(128, 'a')}, {"b", std::string(128, '0')}}};
}

TEST_CASE("a table of matrix products is read as it was written, for its GPU and library alone") {
  const Cache cache;
  CHECK(Calibration::read("NVIDIA H200", "130100").products.empty());
  CHECK(Calibration{}.hash().empty());
  const Calibration written = table();
  const std::string path = written.write();
  CHECK(path == cache.folder.path() + "/zs/products/NVIDIA_H200-cublas-130100");
  const Calibration read = Calibration::read("NVIDIA H200", "130100");
  CHECK(read.products == written.products);
  CHECK(read.rates == written.rates);
  CHECK(read.hash() == written.hash());
  CHECK(read.hash().size() == 16);
  CHECK(Calibration::read("NVIDIA H200", "130200").products.empty());
  CHECK(Calibration::read("NVIDIA H100 80GB HBM3", "130100").products.empty());
}

TEST_CASE("the hash is that of the kernels: rates do not count, each kernel does") {
  const Calibration first = table();
  Calibration other = first;
  other.rates["bfloat16"] = 1;
  CHECK(other.hash() == first.hash());
  other.products["b"].back() = '1';
  CHECK(other.hash() != first.hash());
}

TEST_CASE("a broken table is refused with its line") {
  const Cache cache;
  const std::string path = table().write(), good = Input(path).read_all();
  const auto error_of = [&](const std::string& text) -> std::string {
    write_file(path, text);
    try {
      Calibration::read("NVIDIA H200", "130100");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(error_of(good).empty());
  CHECK(error_of("") == path + ": is empty: remove the file, then zs-train --calibrate measures again");
  CHECK(error_of("hello\n").starts_with(path + ":1: not a table of matrix products"));
  CHECK(error_of(good + "product\tx\tabc\n").starts_with(path + ":8: malformed line"));
  CHECK(error_of(good + "rate\tx\t-1\n").starts_with(path + ":8: malformed line"));
  CHECK(error_of("#zs-products 1\ngpu\tNVIDIA A100\n")
            .starts_with(path + ":2: measured with gpu NVIDIA A100, not NVIDIA H200"));
  CHECK(error_of(good.substr(0, good.size() - 20)).starts_with(path + ":7: malformed line"));
}

}  // namespace
}  // namespace zs::kernel
