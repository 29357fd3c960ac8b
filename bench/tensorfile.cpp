// SPDX-License-Identifier: Apache-2.0
// Files of tensors beside cp on 500 MB, in one run: ours and theirs in the order A B B A, the median of each.
// Started by bench/tensorfile with a folder on the disk to measure.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/number.hpp"
#include "tensorfile/safetensors.hpp"
#include "tensorfile/torch.hpp"

namespace {

namespace tf = zs::tensorfile;

constexpr int kTensors = 148, kRounds = 3;  // as many tensors as GPT-2 has
constexpr std::int64_t kElements = 125'000'000 / kTensors;
constexpr double kBytes = 4.0 * kTensors * kElements;

double seconds_of(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void run(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw zs::Error(command + ": failed");
}

void compare(const char* what, const char* peer, const std::function<void()>& ours,
             const std::function<void()>& theirs) {
  std::vector<double> our_times, their_times;
  ours();
  theirs();
  for (int round = 0; round < kRounds; ++round) {
    our_times.push_back(seconds_of(ours));
    their_times.push_back(seconds_of(theirs));
    their_times.push_back(seconds_of(theirs));
    our_times.push_back(seconds_of(ours));
  }
  const double our = median(our_times), their = median(their_times);
  std::printf("%s\t%s\t%s\t%s\t%s\n", what, zs::to_rounded_text(kBytes / our / 1e6, 3).c_str(), peer,
              zs::to_rounded_text(kBytes / their / 1e6, 3).c_str(), zs::to_rounded_text(their / our, 3).c_str());
}

void bench(const std::string& folder) {
  std::vector<float> values(kTensors * kElements), read(kElements);
  std::minstd_rand random(1);
  for (float& value : values) value = static_cast<float>(random());
  tf::Dict dict;
  tf::NamedTensors named;
  for (int i = 0; i < kTensors; ++i) {
    const tf::Tensor tensor =
        tf::borrow_f32({kElements}, std::span(values).subspan(static_cast<std::size_t>(i * kElements), kElements));
    dict.items.push_back({"t" + std::to_string(i), tensor});
    named.emplace_back("t" + std::to_string(i), tensor);
  }
  const std::string torch = folder + "/a.bin", safe = folder + "/a.safetensors", copy = folder + "/copy";
  // With the same promise as ours: on the disk, and never half a file under its name.
  const auto copy_synced = [&](const std::string& from) {
    const std::string half = copy + ".tmp";
    return [=] { run("cp --reflink=never " + from + " " + half + " && sync " + half + " && mv " + half + " " + copy); };
  };
  // cp to a pipe's reader: the bytes pass through memory, as they do for us.
  const auto copy_out = [](const std::string& from) {
    return [from] { run("cp " + from + " /dev/stdout | cat > /dev/null"); };
  };
  const auto check = [&](const tf::Tensor& tensor) { tf::read_f32(tensor, read); };

  std::printf("what\tzs, MB/s\tbeside\tMB/s\tratio\n");
  compare(
      "write torch.save, on disk", "cp, sync, mv", [&] { tf::write_torch(torch, dict); }, copy_synced(torch));
  compare(
      "write safetensors, on disk", "cp, sync, mv", [&] { tf::write_safetensors(safe, named); }, copy_synced(safe));
  const auto read_torch = [&](bool verify) {
    const tf::Value root = tf::read_torch(torch);
    if (verify) tf::verify(root);
    for (const tf::Item& item : root.get<tf::Dict>()->items) check(*item.value.get<tf::Tensor>());
  };
  compare(
      "read torch.save", "cp to a pipe", [&] { read_torch(false); }, copy_out(torch));
  compare(
      "read torch.save, checksums too", "cp to a pipe", [&] { read_torch(true); }, copy_out(torch));
  compare(
      "read safetensors", "cp to a pipe",
      [&] {
        for (const auto& [name, tensor] : tf::read_safetensors(safe).tensors) check(tensor);
      },
      copy_out(safe));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("tensorfile: expected a folder, run bench/tensorfile\n", stderr);
    return 2;
  }
  try {
    bench(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tensorfile: %s\n", error.what());
    return 2;
  }
}
