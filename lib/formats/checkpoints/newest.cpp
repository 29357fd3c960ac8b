// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/newest.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <vector>

#include "base/number.hpp"
#include "checkpoints/read.hpp"

namespace zs::checkpoints {
namespace {

namespace fs = std::filesystem;

struct Candidate {
  std::int64_t number;
  fs::file_time_type time;
  std::string path;
};

void collect(const fs::path& folder, int deeper, std::vector<Candidate>& found) {
  static const RE2 kFolder("^[A-Za-z][A-Za-z_-]*?[_=-]?(\\d{1,17})$"), kFile("^[^.].*?(\\d{1,17})\\.(pt|pth|ckpt)$");
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    const bool is_folder = entry.is_directory(failure);
    std::string digits;
    // zs's checkpoint after the last step.
    if (is_folder && name == "final_checkpoint")
      found.push_back({INT64_MAX, entry.last_write_time(failure), entry.path().string()});
    else if (RE2::PartialMatch(name, is_folder ? kFolder : kFile, &digits))
      found.push_back({parse_int(digits).value_or(0), entry.last_write_time(failure), entry.path().string()});
    else if (is_folder && deeper > 0)
      collect(entry.path(), deeper - 1, found);
  }
}

bool is_whole(const std::string& path) {
  try {
    return read(path).faults.empty();
  } catch (const std::exception&) {  // it is none, or is only being written
    return false;
  }
}

}  // namespace

std::string newest_whole(const std::string& folder) {
  std::vector<Candidate> found;
  collect(folder, 2, found);
  std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(b.number, b.time, b.path) < std::tie(a.number, a.time, a.path);
  });
  for (const Candidate& one : found) {
    if (is_whole(one.path)) return one.path;
  }
  return "";
}

}  // namespace zs::checkpoints
