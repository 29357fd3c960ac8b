// SPDX-License-Identifier: Apache-2.0
#include "probefile/read.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "probefile/check.hpp"
#include "probefile/folder.hpp"
#include "probefile/join.hpp"
#include "probefile/parse.hpp"

namespace zs::probefile {
namespace {

namespace fs = std::filesystem;

/// The content of a file from that byte on.
std::string read_from(const std::string& path, std::uintmax_t at) {
  if (at == 0) return Input(path).read_all();
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (file.bad() || !file) throw Error(path, 0, "cannot be read any more");
  return content;
}

}  // namespace

Environment environment_of(const HeadRow& head) {
  Environment found = head.environment;
  found.emplace("torch", head.torch);
  return found;
}

std::vector<std::string> changes(const Environment& from, const Environment& to) {
  Environment keys = from;
  keys.insert(to.begin(), to.end());
  const auto value = [](const Environment& environment, const std::string& key) {
    const auto found = environment.find(key);
    return found == environment.end() ? std::string("none") : found->second;
  };
  std::vector<std::string> changed;
  for (const auto& [key, any] : keys) {
    if (value(from, key) != value(to, key)) changed.push_back(key + " " + value(from, key) + " -> " + value(to, key));
  }
  return changed;
}

HeadRow head_of(const std::string& folder) {
  const auto ranks = ranks_in(folder);
  if (ranks.empty()) throw Error(folder, 0, "is no recording of zs_probe: it has no rank-0.jsonl");
  const std::string path = path_of(folder, static_cast<int>(ranks.front()));
  Input input(path);
  std::string text;  // no more is read than the line needs: a recording may be large
  for (std::string part = "?"; !part.empty() && text.find('\n') == std::string::npos; text += part)
    part = read_start(input, 1 << 16);
  try {
    auto row = parse(std::string_view(text).substr(0, text.find('\n')));
    if (auto* const head = std::get_if<HeadRow>(&row)) return std::move(*head);
  } catch (const Error& error) {
    throw Error(path, 1, error.what());
  }
  throw Error(path, 1, "is not the first line of a recording");
}

class Growing::Reader {
 public:
  explicit Reader(std::string folder, std::int64_t after = 0)
      : folder_(std::move(folder)), after_(after), join_(run_, folder_) {}

  Run read() {
    grow();
    settle();
    begin_after();
    return std::move(run_);
  }

  /// Reads what was added to the ranks' files. A step counts when all ranks have it.
  Run& grow() {
    file(0);
    run_.ranks = static_cast<int>(std::clamp<std::int64_t>(run_.heads.at(0).front().ranks, 0, INT32_MAX));
    if (run_.ranks < 1 || run_.ranks > 1 << 20) throw Error(path_of(folder_, 0), 1, "has no number of ranks");
    for (int rank = 1; rank < run_.ranks; ++rank) file(rank);
    foreign();
    for (auto step = waiting_.begin(); step != waiting_.end();) {
      if (static_cast<int>(step->second.ranks.size()) < run_.ranks) {
        ++step;
        continue;
      }
      join_.complete(step->first, step->second);
      run_.steps.insert(waiting_.extract(step++));
    }
    const bool ended = std::ranges::all_of(
        run_.parts, [&](const auto& rank) { return !rank.second.empty() && rank.second.back().end; });
    run_.end = ended ? run_.parts.at(0).back().end->end : -1;
    return run_;
  }

  void settle() {
    if (std::exchange(settled_, true)) return;
    std::vector<RankFile> files;
    for (auto& [rank, file] : files_) files.push_back(file.seen);
    join_.settle();
    check(run_, files, after_);
  }

 private:
  /// The result of the last skipped step is the start of the following ones.
  void begin_after() {
    if (after_ == 0) return;
    if (const auto last = run_.steps.find(after_); last != run_.steps.end())
      run_.starts.try_emplace(after_, std::move(last->second.tensors));
    std::erase_if(run_.steps, [&](const auto& step) { return step.first <= after_; });
    std::erase_if(run_.starts, [&](const auto& start) { return start.first < after_; });
    std::erase_if(run_.counted, [&](const auto& start) { return start.first < after_; });
  }

  /// A rank's file, as far as it was read.
  struct File {
    RankFile seen;
    std::uintmax_t at = 0;  ///< bytes
    std::string damage;
  };

  void file(int rank) {
    const std::string path = path_of(folder_, rank);
    File& known = files_[rank];
    known.seen.path = path;
    if (rank > 0 && !fs::exists(path))
      throw Error(path, 0,
                  "is not there, and rank-0.jsonl is of " + std::to_string(run_.ranks) +
                      " ranks: copy the files of all nodes into one folder");
    const std::string content = read_from(path, known.at);
    known.seen.torn = false;
    for (std::size_t at = 0; at < content.size() && known.damage.empty();) {
      const std::size_t end = content.find('\n', at);
      if (end == std::string::npos) {  // cut: the training was killed within it, or still writes it
        known.seen.torn = true;
        break;
      }
      ++known.seen.line;
      try {
        row(parse(std::string_view(content).substr(at, end - at)), rank, known.seen);
      } catch (const Error& error) {
        known.damage = error.what();
      }
      known.at += end + 1 - at;
      at = end + 1;
    }
    if (!known.damage.empty()) throw Error(path, known.seen.line, known.damage);
    if (known.seen.line == 0) throw Error(path, 0, "is empty, expected the record of zs_probe");
  }

  /// Files of ranks that the training does not have are of another one.
  void foreign() {
    for (const fs::path& entry : entries_of(folder_)) {
      const std::string name = entry.filename().string();
      run_.drawn |= name == "rollout";
      if (!name.starts_with("rank-")) continue;
      if (name.ends_with(".refused") && refused_.insert(name).second)
        run_.unseen.push_back("another training that began in " + folder_ + " (" + name +
                              " says so: remove it if it does not belong here)");
      if (!name.ends_with(".jsonl")) continue;
      const auto rank = parse_int(name.substr(5, name.size() - 11));
      if (!rank || *rank < 0 || *rank >= run_.ranks)
        throw Error(folder_ + "/" + name, 0,
                    "is there, and the training has " + std::to_string(run_.ranks) +
                        (run_.ranks == 1 ? " rank" : " ranks") + ": it is of another");
    }
  }

  void row(std::variant<HeadRow, StartRow, StepRow, EndRow> line, int rank, RankFile& file) {
    auto& parts = run_.parts[rank];
    if (auto* const head = std::get_if<HeadRow>(&line)) {
      if (head->rank != rank)
        throw Error("is of rank " + to_text(head->rank) + ", in the file of rank " + std::to_string(rank));
      if (rank > 0 && head->ranks != run_.heads.at(0).front().ranks)
        throw Error("is of a training on another number of ranks");
      if (rank == 0 && !parts.empty() && head->ranks != run_.heads.at(0).front().ranks)
        throw Error("is of a training on another number of ranks");
      join_.head(*head, rank);
      parts.emplace_back();
      return;
    }
    if (parts.empty()) throw Error("is not the first line of zs_probe");
    Part& part = parts.back();
    if (part.end) throw Error("stands behind the end of the recording");
    const std::int64_t last = file.lines.empty() ? 0 : file.lines.rbegin()->first;
    if (auto* const end = std::get_if<EndRow>(&line)) {
      if (end->end < 0 || (end->every && *end->every < 1) || (end->since && *end->since < 0))
        throw Error("is no end of a recording: a number is below its least value");
      if (end->rank != rank) throw Error("is the end of rank " + to_text(end->rank));
      if (end->end < last) fault(file, "ends after " + to_text(end->end) + " steps, behind step " + to_text(last));
      part.end = *end;
    } else if (auto* const start = std::get_if<StartRow>(&line)) {
      if (start->start < 0) throw Error("starts after " + to_text(start->start) + " steps");
      if (part.started || last > start->start) throw Error("is a start where none can be: it is of another training");
      part.started = true, part.start = start->start;
      join_.start(std::move(*start), rank);
    } else {
      auto& step = std::get<StepRow>(line);
      if (step.step < 1) throw Error("step is " + to_text(step.step));
      if (parts.size() > 1 && step.step <= part.start && !file.lines.contains(step.step))
        throw Error("step " + to_text(step.step) +
                    " stands behind the end of the recording: it is of another training");
      if (const auto known = file.lines.find(step.step); known != file.lines.end())
        return fault(file, "step " + to_text(step.step) + " is there twice, first in line " + to_text(known->second));
      if (step.step < last) fault(file, "step " + to_text(step.step) + " comes after step " + to_text(last));
      file.lines[step.step] = file.line;
      Step& into = waiting_[step.step];
      join_.step(into, std::move(step), rank);
    }
  }

  void fault(const RankFile& file, const std::string& what) {
    run_.faults.push_back(located(file.path, file.line, what));
  }

  std::string folder_;
  std::int64_t after_;
  Run run_;
  Join join_;
  std::map<int, File> files_;
  std::map<std::int64_t, Step> waiting_;  // for the other ranks
  std::set<std::string> refused_;
  bool settled_ = false;
};

Run read(const std::string& folder, std::int64_t after) { return Growing::Reader(folder, after).read(); }

Growing::Growing(const std::string& folder) : reader_(std::make_unique<Reader>(folder)) {}
Growing::~Growing() = default;
Run& Growing::read() { return reader_->grow(); }
void Growing::settle() { reader_->settle(); }

}  // namespace zs::probefile
