// SPDX-License-Identifier: Apache-2.0
// The files that must not change between the planning of a training and its start.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "experiment/plan.hpp"

namespace zs::experiment {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargest = std::size_t{1} << 32;  // bytes

/// The program of that name on PATH, links resolved.
std::string program(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code failure;
    const fs::path file = fs::path(folder.empty() ? "." : folder) / name;
    if (fs::is_regular_file(file, failure)) return fs::canonical(file).string();
  }
  throw Error(name + " is not on PATH");
}

bool is_configuration(const std::string& path) {
  const fs::path file(path);
  return file.filename() == "config.yaml" ||
         (file.extension() == ".yaml" && file.parent_path().filename() == "configs");
}

}  // namespace

void freeze(const std::string& path, std::vector<std::string> files, bool foreign) {
  files.insert(files.begin(), program(foreign ? "zs-record" : "zs-train"));
  std::string text;
  for (const std::string& file : files) text += sha256(read_regular(file, kLargest).bytes) + "  " + file + "\n";
  write_file(path, text);
}

void require_frozen(const std::string& path, const std::vector<std::string>& configurations) {
  if (!fs::exists(path)) throw Error("gone since this was submitted: " + path + "; submit again");
  std::istringstream lines(Input(path).read_all());
  for (std::string line; std::getline(lines, line);) {
    const std::size_t gap = line.find("  ");
    if (gap == std::string::npos) throw Error(path, 0, "is not a list of sha256sum");
    const std::string file = line.substr(gap + 2);
    const bool other = std::find(configurations.begin(), configurations.end(), file) == configurations.end();
    if (!configurations.empty() && is_configuration(file) && other) continue;
    std::string now;
    try {
      now = sha256(read_regular(file, kLargest).bytes);
    } catch (const Error&) {  // it is gone
    }
    if (now != line.substr(0, gap)) throw Error("changed since this was submitted: " + file + "; submit again");
  }
}

}  // namespace zs::experiment
