// SPDX-License-Identifier: Apache-2.0
#include "kernel/calibration.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"

namespace zs::kernel {
namespace {

constexpr const char* kFirstLine = "#zs-products 1";
constexpr std::size_t kAlgorithm = 128;  // hex digits

bool is_hex(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

}  // namespace

std::string Calibration::hash() const {
  if (products.empty()) return "";
  std::string lines;
  for (const auto& [product, algorithm] : products) lines += product + "\t" + algorithm + "\n";
  return fmt::format("{:016x}", XXH3_64bits(lines.data(), lines.size()));
}

std::string Calibration::place(const std::string& gpu, const std::string& cublas) {
  std::string name = gpu + "-cublas-" + cublas;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-'; }, '_');
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache) return std::filesystem::path(cache) / "zs" / "products" / name;
  const char* const home = std::getenv("HOME");
  return std::filesystem::path(home ? home : "/") / ".cache" / "zs" / "products" / name;
}

Calibration Calibration::read(const std::string& gpu, const std::string& cublas) {
  Calibration table{gpu, cublas, {}, {}};
  const std::string path = place(gpu, cublas);
  if (!std::filesystem::exists(path)) return table;
  std::istringstream lines(Input(path).read_all());
  std::int64_t number = 0;
  const auto broken = [&](const std::string& what) {
    return Error(path, number, what + ": remove the file, then zs-train --calibrate measures again");
  };
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::vector<std::string> words(1);
    for (const char c : line) {
      if (c == '\t')
        words.emplace_back();
      else
        words.back().push_back(c);
    }
    if (number == 1) {
      if (line != kFirstLine) throw broken("not a table of matrix products");
    } else if (words.size() == 2 && (words[0] == "gpu" || words[0] == "cublas")) {
      const std::string& here = words[0] == "gpu" ? gpu : cublas;
      if (words[1] != here) throw broken("measured with " + words[0] + " " + words[1] + ", not " + here);
    } else if (words.size() == 3 && words[0] == "rate" && parse_real(words[2]).value_or(0) > 0) {
      table.rates[words[1]] = *parse_real(words[2]);
    } else if (words.size() == 3 && words[0] == "product" && words[2].size() == kAlgorithm && is_hex(words[2])) {
      table.products[words[1]] = words[2];
    } else {
      throw broken("malformed line");
    }
  }
  if (number == 0) throw broken("is empty");
  return table;
}

std::string Calibration::write() const {
  const std::string path = place(gpu, cublas);
  std::string text = kFirstLine;
  const auto line = [&](std::initializer_list<std::string> words) {
    const char* between = "\n";
    for (const std::string& word : words) text.append(between).append(word), between = "\t";
  };
  line({"gpu", gpu});
  line({"cublas", cublas});
  for (const auto& [format, rate] : rates) line({"rate", format, to_text(rate)});
  for (const auto& [product, algorithm] : products) line({"product", product, algorithm});
  text += "\n";
  std::error_code failure;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failure);
  write_file(path, text);
  return path;
}

}  // namespace zs::kernel
