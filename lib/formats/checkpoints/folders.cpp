// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/folders.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <tuple>
#include <vector>

#include "base/folder.hpp"
#include "base/number.hpp"
#include "checkpoints/read.hpp"
#include "tensorfile/state_dict.hpp"

namespace zs::checkpoints {
namespace {

namespace fs = std::filesystem;

bool has_one_of(const std::string& folder, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return is_there(folder + "/" + name); });
}

struct Candidate {
  std::int64_t number;
  fs::file_time_type time;
  std::string path;
};

void collect(const fs::path& folder, int deeper, std::vector<Candidate>& found) {
  static const RE2 kFolder("^[A-Za-z][A-Za-z_-]*?[_=-]?(\\d{1,17})$"), kFile("^[^.].*?(\\d{1,17})\\.(pt|pth|ckpt)$");
  std::error_code failure;
  for (const fs::path& entry : entries_of(folder)) {
    const std::string name = entry.filename().string();
    const bool inner = is_folder(entry);
    std::string digits;
    // zs's checkpoint after the last step.
    if (inner && name == "final_checkpoint")
      found.push_back({INT64_MAX, fs::last_write_time(entry, failure), entry.string()});
    else if (RE2::PartialMatch(name, inner ? kFolder : kFile, &digits))
      found.push_back({parse_int(digits).value_or(0), fs::last_write_time(entry, failure), entry.string()});
    else if (inner && deeper > 0)
      collect(entry, deeper - 1, found);
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

std::vector<Checkpoint> checkpoints_in(const std::string& folder) {
  std::vector<Checkpoint> found;
  for (const fs::path& entry : entries_of(folder)) {
    const std::string name = entry.filename().string();
    if (name == "final_checkpoint" && is_folder(entry)) found.push_back({INT64_MAX, entry.string()});
    for (const std::string_view prefix : {"checkpoint-", "checkpoint_", "step-", "iter_", "epoch_", "global_step"}) {
      if (!name.starts_with(prefix) || !is_folder(entry)) continue;
      const auto step = parse_int(std::string_view(name).substr(prefix.size()));
      if (step && *step >= 0) found.push_back({*step, entry.string()});
    }
  }
  std::ranges::sort(found,
                    [](const auto& a, const auto& b) { return std::tie(a.step, a.path) < std::tie(b.step, b.path); });
  return found;
}

bool is_trainers(const std::string& folder) {
  return has_one_of(folder, {"optimizer.bin", "scheduler.bin", "pytorch_model_fsdp.bin", "pytorch_model_fsdp_0",
                             "optimizer_0", "trainer_state.json"});
}

bool is_plain(const std::string& folder) {
  return tensorfile::has_state_dict(folder) ||
         has_one_of(folder, {"gradients.pt", "gradient_norms.pt", "optimizer.pt", "config.json", "accelerator_states"});
}

bool holds_tensors(const std::string& path) {
  if (!is_file(path)) return false;
  std::string head(9, '\0');
  std::ifstream stream(path, std::ios::binary);
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, stream.gcount())));
  constexpr std::string_view kBeforeZip("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9", 9);  // torch.save's magic number
  if (head.starts_with("PK\x03\x04") || head == kBeforeZip || path.ends_with(".safetensors") ||
      path.ends_with(".index.json"))
    return true;
  // A log of JSON lines may have a brace there too, but no eight bytes that are a length.
  return head.size() == 9 && head[8] == '{' && head[7] == '\0' && head[6] == '\0';
}

std::string newest_whole(const std::string& folder) {
  std::vector<Candidate> found;
  collect(folder, 2, found);
  std::ranges::sort(found, [](const Candidate& a, const Candidate& b) {
    return std::tie(b.number, b.time, b.path) < std::tie(a.number, a.time, a.path);
  });
  for (const Candidate& one : found) {
    if (is_whole(one.path)) return one.path;
  }
  return "";
}

}  // namespace zs::checkpoints
