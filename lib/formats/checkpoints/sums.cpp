// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/sums.hpp"

#include <filesystem>
#include <sstream>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/mapped.hpp"
#include "tensorfile/storage.hpp"

namespace zs::checkpoints {

namespace fs = std::filesystem;

bool is_read(const std::string& file) {
  for (const char* const front : {"accelerator_states/", "model", "pytorch_model"}) {
    if (file.starts_with(front)) return true;
  }
  return file == "config.json" || file == "gradients.pt" || file == "gradient_norms.pt" || file == "optimizer.pt";
}

std::vector<std::string> files(const std::string& folder) {
  std::vector<std::string> found;
  for (const fs::path& file : files_below(folder)) found.push_back(file.lexically_relative(folder).string());
  return found;
}

std::map<std::string, std::string> read_sums(const std::string& folder) {
  const std::string path = folder + "/" + kSums;
  std::istringstream lines(Input(path).read_all());
  std::map<std::string, std::string> sums;
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.size() < 67 || line.substr(64, 2) != "  " || line[66] == '/' || line.find("..") != std::string::npos)
      throw Error(path, number, "expected a digest and a file of the folder");
    if (!sums.emplace(line.substr(66), line.substr(0, 64)).second)
      throw Error(path, number, "lists " + line.substr(66) + " a second time");
  }
  return sums;
}

std::vector<std::string> unlike_sums(const std::string& folder, const std::map<std::string, std::string>& sums) {
  std::vector<std::string> faults;
  for (const auto& [file, digest] : sums) {
    if (!is_file(folder + "/" + file))
      faults.push_back(
          located(folder + "/" + file, 0, "is missing, and SHA256SUMS lists it: the checkpoint is damaged"));
  }
  for (const std::string& file : files(folder)) {
    if (is_read(file) && sums.count(file) == 0) {
      faults.push_back(located(folder + "/" + kSums, 0,
                               "does not list " + file +
                                   ", so zs cannot check that file: use another checkpoint, or "
                                   "remove the file if it is not the checkpoint's"));
    }
  }
  return faults;
}

std::map<std::string, std::string> require_files(const std::string& folder) {
  std::map<std::string, std::string> sums = read_sums(folder);
  if (const std::vector<std::string> faults = unlike_sums(folder, sums); !faults.empty()) throw Error(faults.front());
  return sums;
}

void require_sum(const std::string& folder, const std::string& file, const std::string& digest) {
  const std::string path = folder + "/" + file;
  if (sha256(Mapping::open(path)->bytes()) != digest) {
    throw Error(path, 0,
                "does not have the checksum that SHA256SUMS gives: the file is damaged, use another checkpoint");
  }
}

}  // namespace zs::checkpoints
