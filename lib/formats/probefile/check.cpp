// SPDX-License-Identifier: Apache-2.0
#include "probefile/check.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/number.hpp"

namespace zs::probefile {
namespace {

class Check {
 public:
  Check(Run& run, const std::vector<RankFile>& files, std::int64_t after) : run_(run), files_(files), after_(after) {}

  void all() {
    for (std::size_t rank = 0; rank < files_.size(); ++rank) {
      ends(static_cast<int>(rank));
      stride(static_cast<int>(rank));
    }
    same_on_all();
    axes();
    same_steps();
    for (const auto& [number, tensors] : run_.starts) {
      for (const auto& [name, tensor] : tensors.all()) {
        if (!tensor.whole())
          fault(files_.front(), 0,
                "start: of " + name + " " + to_text(tensor.held) + " of " + to_text(tensor.total) +
                    " elements are there");
      }
    }
    const auto& last = run_.parts.at(0).back();
    const bool ended =
        std::ranges::all_of(run_.parts, [](const auto& rank) { return rank.second.back().end.has_value(); });
    run_.end = ended ? last.end->end : -1;
  }

 private:
  void fault(const RankFile& file, std::int64_t line, const std::string& what) {
    run_.faults.push_back(located(file.path, line, what));
  }
  void unseen(const std::string& what) { run_.unseen.push_back(what); }

  void ends(int rank) {
    const RankFile& file = files_[static_cast<std::size_t>(rank)];
    const auto& parts = run_.parts.at(rank);
    for (const Part& part : parts) {
      if (!part.started) fault(file, 0, "has no start: the parameters before the first step are missing");
    }
    const Part& last = parts.back();
    if (file.torn)
      fault(file, file.line + 1, "is cut: the training was killed, or the file is damaged");
    else if (!last.end)
      fault(file, file.line,
            "is the last line, and no end: the training did not call close(), was killed, or still runs");
    if (!last.end) return;
    const EndRow& end = *last.end;
    if (end.how.empty())
      unseen("how the training ended, which its recorder does not say");
    else if (end.how != "whole")
      fault(file, file.line, "says how the training ended, after " + to_text(end.end) + " steps: " + end.how);
    if (!end.lines)
      unseen("how many lines were written, which its recorder does not say");
    else if (*end.lines != static_cast<std::int64_t>(file.lines.size()))
      fault(file, 0,
            "has " + std::to_string(file.lines.size()) + " steps of " + to_text(*end.lines) + " that were written");
  }

  /// Each part has the steps that are due, and no others but the row of its end.
  void stride(int rank) {
    const RankFile& file = files_[static_cast<std::size_t>(rank)];
    const auto& parts = run_.parts.at(rank);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      const std::int64_t from = std::max(part.start, after_);
      if (i + 1 < parts.size()) {
        const std::int64_t reached = part.end ? part.end->end : last_before(file, parts[i + 1].start);
        if (parts[i + 1].start != reached)
          fault(file, 0,
                "resumes after " + to_text(parts[i + 1].start) + " steps, and the record before reaches step " +
                    to_text(reached));
      }
      if (!part.end) continue;
      const EndRow& end = *part.end;
      const std::string what = end.every ? "step 1 and each multiple of " + to_text(*end.every) : "each step";
      const auto lacks = [&] {
        for (std::int64_t step = from + 1; step <= end.end; ++step) {
          if (due(part, step) && (step > after_) && !file.lines.contains(step)) return step;
        }
        return std::int64_t{0};
      }();
      if (lacks > 0)
        fault(file, 0,
              "lacks step " + to_text(lacks) + ", where " + what + " up to " + to_text(end.end) + " is recorded");
      if (!end.since && end.every) continue;  // an older recorder: the first steps are recorded, as many as there are
      for (auto step = file.lines.upper_bound(from); step != file.lines.end() && step->first <= end.end; ++step) {
        if (due(part, step->first) || step->first == end.end) continue;
        fault(file, step->second, "has step " + to_text(step->first) + ", where " + what + " is recorded");
        break;
      }
    }
  }

  static std::int64_t last_before(const RankFile& file, std::int64_t start) {
    const auto next = file.lines.upper_bound(start);
    return next == file.lines.begin() ? 0 : std::prev(next)->first;
  }

  /// Headers and ends of the ranks: each has its own stride, since each measures its own time.
  void same_on_all() {
    const auto& heads = run_.heads.at(0);
    const auto& parts = run_.parts.at(0);
    for (std::size_t rank = 1; rank < files_.size(); ++rank) {
      const auto& theirs = run_.heads.at(static_cast<int>(rank));
      const auto& its_parts = run_.parts.at(static_cast<int>(rank));
      if (theirs.size() != heads.size()) {
        fault(files_[rank], 0,
              "has " + std::to_string(theirs.size()) + " parts, rank 0 " + std::to_string(heads.size()));
        continue;
      }
      for (std::size_t i = 0; i < heads.size(); ++i) {
        if (theirs[i].torch != heads[i].torch || theirs[i].layout != heads[i].layout ||
            theirs[i].framework != heads[i].framework)
          fault(files_[rank], 0, "names another layout, framework or PyTorch than rank 0");
        if (its_parts[i].start != parts[i].start)
          fault(files_[rank], 0,
                "starts after " + to_text(its_parts[i].start) + " steps, rank 0 after " + to_text(parts[i].start));
        const auto &mine = parts[i].end, &other = its_parts[i].end;
        if (mine && other && mine->end != other->end)
          fault(files_[rank], 0, "ends after " + to_text(other->end) + " steps, rank 0 after " + to_text(mine->end));
      }
    }
    for (const auto& [rank, rows] : run_.heads) {  // parts of one training: what a resumed one repeats
      for (const HeadRow& row : rows) {
        if (row.torch != rows.front().torch || row.layout != rows.front().layout)
          unseen("rank " + std::to_string(rank) + " resumed under another layout or PyTorch");
        for (const std::string& text : row.unseen) unseen(text);
      }
    }
    for (const auto& [rank, parts] : run_.parts) {
      for (const Part& part : parts) {
        if (part.end) run_.unseen.insert(run_.unseen.end(), part.end->unseen.begin(), part.end->unseen.end());
      }
    }
    std::ranges::sort(run_.unseen);
    run_.unseen.erase(std::unique(run_.unseen.begin(), run_.unseen.end()), run_.unseen.end());
  }

  /// An axis of parallelism has one size. No two ranks have the same place on axes that hold all ranks.
  void axes() {
    std::map<std::string, std::int64_t> sizes;
    for (std::size_t rank = 0; rank < files_.size(); ++rank) {
      for (const auto& [name, axis] : run_.heads.at(static_cast<int>(rank)).back().axes) {
        const auto [known, added] = sizes.emplace(name, axis[0]);
        if (!added && known->second != axis[0])
          fault(files_[rank], 0,
                "says " + to_text(axis[0]) + " " + name + " ranks, a rank before " + to_text(known->second));
      }
    }
    std::int64_t product = 1;
    for (const auto& [name, size] : sizes) product *= size;
    std::map<std::map<std::string, std::vector<std::int64_t>>, std::size_t> places;
    for (std::size_t rank = 0; product == run_.ranks && rank < files_.size(); ++rank) {
      const auto [known, added] = places.emplace(run_.heads.at(static_cast<int>(rank)).back().axes, rank);
      if (!added)
        fault(files_[rank], 0,
              "has rank " + to_text(static_cast<std::int64_t>(known->second)) + "'s place on all axes of parallelism");
    }
  }

  /// The first step that a rank lacks and another has, unless its stride leaves it out.
  void same_steps() {
    std::map<std::int64_t, std::string> places;  // the place of each step
    for (const RankFile& file : files_) {
      for (const auto& [step, line] : file.lines) places.emplace(step, file.path + ":" + to_text(line));
    }
    for (std::size_t rank = 0; rank < files_.size(); ++rank) {
      const auto& parts = run_.parts.at(static_cast<int>(rank));
      for (const auto& [step, place] : places) {
        if (files_[rank].lines.contains(step) || step <= after_) continue;
        const auto part = std::find_if(parts.rbegin(), parts.rend(), [&](const Part& p) { return p.start < step; });
        if (part != parts.rend() && part->end && step <= part->end->end && !due(*part, step)) continue;
        fault(files_[rank], 0, "lacks step " + to_text(step) + ", which is in " + place);
        break;
      }
    }
  }

  Run& run_;
  const std::vector<RankFile>& files_;
  std::int64_t after_;
};

}  // namespace

bool due(const Part& part, std::int64_t step) {
  if (!part.end || !part.end->every) return true;
  return step == 1 || step % *part.end->every == 0 ||
         (part.end->since && *part.end->since > 0 && step <= *part.end->since);
}

void check(Run& run, const std::vector<RankFile>& files, std::int64_t after) { Check(run, files, after).all(); }

}  // namespace zs::probefile
