// SPDX-License-Identifier: Apache-2.0
// Reads how a failed run ended:
//   Traceback (most recent call last):  ...  torch.cuda.OutOfMemoryError: CUDA out of memory. ...
//   srun: error: node07: task 3: Exited with exit code 1
//   slurmstepd: error: *** JOB 4711 ON node07 CANCELLED AT 2026-11-20T04:12:00 DUE TO TIME LIMIT ***
//     exitcode  : -9 (pid: 4711)
//   [rank1]:[E626 ... ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(...)
//   ran for ... usage: train.py [-h] [--lr LR]  ...  train.py: error: argument --lr: invalid float value: 'fast'
//   [2026-11-20 04:12:00] [INFO] [launch.py:319:sigkill_handler] [...] exits with return code = -9
//   mpirun noticed that process rank 1 with PID 0 on node node07 exited on signal 9 (Killed).
// The cause becomes `error`, with `error_line` and `error_rank`: the first error that a rank had by itself, of the rank
// that torchrun names as the root; else the first line that tells of an end.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "attribute/state.hpp"
#include "base/number.hpp"
#include "parse/dialect.hpp"
#include "parse/text.hpp"

namespace zs::parse {
namespace {

/// "train.py: error: argument --lr: ...", by Python's argparse; click says "Error: No such option: --lr".
bool is_usage_error(std::string_view text) {
  const std::size_t colon = text.find(": error: ");
  return text.starts_with("Error: ") || (colon != std::string_view::npos && colon > 0 &&
                                         text.substr(0, colon).find_first_of(" \t:") == std::string_view::npos);
}

/// Whether an error follows from the end of another rank: it says that a rank failed, but not why.
bool follows(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kSigns = {
      "Connection closed by peer", "Connection reset by peer", "Broken pipe",
      "SignalException",           "DistNetworkError",         "ncclRemoteError",
      "remote process exited",     "ChildFailedError",         "CalledProcessError"};
  return std::ranges::any_of(kSigns, [&](std::string_view sign) { return text.find(sign) != std::string_view::npos; });
}

class Failure : public Dialect {
 public:
  bool wants_all() const override { return in_traceback_; }

  Verdict read(const Line& line, Emitter& emitter) override {
    const auto [rank, text] = rank_line(trimmed(line.text));
    rank_ = rank;
    if (std::string_view rest = text; skip(rest, "rank") && (skip_blanks(rest), skip(rest, ": "))) {
      summary_rank_ = std::string(take_digits(rest));  // torchrun's: "rank      : 1 (local_rank: 1)", before "exitcode"
      const auto known = by_rank_.find(summary_rank_);
      if (in_root_ && known != by_rank_.end()) tell(known->second, kRoot);
      return {};
    }
    in_root_ = in_root_ || text.starts_with("Root Cause ");
    // Python ignores the exception and continues: "Exception ignored in: <function ...>", and its traceback.
    if (text.find("Exception ignored ") != text.npos) {
      ++ignored_[std::string(rank_)];
      ignored_line_ = line.number;
      return {true};
    }
    if (text.starts_with("During handling of the above exception") || text.starts_with("The above exception was ")) {
      if (last_ignored_.contains(std::string(rank_)))
        ++ignored_[std::string(rank_)];
      else
        handled_.insert(std::string(rank_));
      return {true};
    }
    if (text.find("Traceback (most recent call last)") != text.npos) {
      in_traceback_ = true;
      traceback_line_ = line.number;
      return {true};
    }
    if (in_traceback_ && line.number > traceback_line_ + kLongestTraceback) in_traceback_ = false;
    if (std::string_view rest = text; skip(rest, "usage: ") || skip(rest, "Usage: ")) usage_ = line.number;
    if (usage_ > 0 && line.number <= usage_ + kLongestUsage && is_usage_error(text)) {
      usage_ = 0;
      return said(text, line);
    }
    if (std::string_view rest = trimmed(text); in_traceback_ && skip(rest, "File \"")) {
      const std::size_t end = rest.find("\", line ");
      std::string_view number = rest.substr(std::min(end + 8, rest.size()));
      if (end != std::string_view::npos)
        place_ = std::string(rest.substr(0, end)) + ":" + std::string(take_digits(number));
    }
    if (in_traceback_ && is_exception(text)) {
      in_traceback_ = false;
      last_ignored_.erase(std::string(rank_));
      const auto ignored = ignored_.find(std::string(rank_));
      if (ignored == ignored_.end() || line.number > ignored_line_ + kLongestUsage) return said(text, line);
      if (--ignored->second == 0) ignored_.erase(ignored);
      last_ignored_.insert(std::string(rank_));
      place_.clear();
      return {true};
    }
    if (const std::size_t at = text.find("Watchdog caught collective operation timeout: ");
        at != std::string_view::npos)
      return waited(text.substr(at), text.substr(0, at), line);
    if (const auto verdict = read_exit(text, line, emitter)) return *verdict;
    for (const std::string_view head : {"slurmstepd: error: ", "srun: error: "}) {  // perhaps behind a progress bar
      const std::size_t at = text.find(head);
      if (at == std::string_view::npos) continue;
      const auto says = [&](std::string_view words) { return text.find(words) != std::string_view::npos; };
      const bool cause = says("oom") || says("Out Of Memory") || says(" DUE TO ");
      if (cause || says(" CANCELLED ") || says("Killed")) return said(text.substr(at), line, cause ? kCause : kFollows);
    }
    return {};
  }

  void finish(Emitter& emitter) override {
    if (depth_ > kNone) {
      waited_.erase(cause_.rank);
      const bool more = cause_.text.starts_with("Watchdog ") && !waited_.empty();
      emitter.attribute("error", cause_.text + (more ? " (rank " + *waited_.begin() + " waited too)" : ""));
      emitter.attribute("error_place", cause_.place);
      emitter.attribute("error_line", to_text(cause_.line));
      emitter.attribute("error_rank", cause_.rank);
      emitter.attribute("exit_state", "failed", true);
    }
    *this = Failure();
  }

 private:
  /// The line of a launcher that tells how a rank ended; nothing for another line.
  std::optional<Verdict> read_exit(std::string_view text, const Line& line, Emitter& emitter) {
    if (const std::size_t at = text.find("Exited with exit code "); at != std::string_view::npos) {
      if (const std::size_t task = text.find("task "); task < at) {  // "srun: error: node07: task 3: Exited ..."
        std::string_view number = text.substr(task + 5);
        rank_ = take_digits(number);
        if (!number.starts_with(":")) rank_ = {};
      }
      return exited(text.substr(at + 22), line, emitter);
    }
    if (const std::size_t at = text.find("exits with return code = "); at != std::string_view::npos)
      return exited(text.substr(at + 25), line, emitter);
    if (const std::size_t at = text.find(" exited on signal "); at != std::string_view::npos) {
      if (const std::size_t process = text.find("process rank "); process < at) {
        std::string_view number = text.substr(process + 13);
        rank_ = take_digits(number);
      }
      return exited("-" + std::string(text.substr(at + 18)), line, emitter);
    }
    if (std::string_view rest = text; skip(rest, "exitcode") && (skip_blanks(rest), skip(rest, ": "))) {
      rank_ = summary_rank_;
      return exited(rest, line, emitter);
    }
    if (std::string_view rest = text; skip(rest, "Exit code:")) return exited(trimmed(rest), line, emitter);
    return std::nullopt;
  }

  /// NCCL's watchdog; PyTorch before 2.3 names the rank in the line alone.
  Verdict waited(std::string_view text, std::string_view before, const Line& line) {
    if (const std::size_t at = before.rfind("[Rank "); rank_.empty() && at != std::string_view::npos) {
      std::string_view number = before.substr(at + 6);
      rank_ = take_digits(number);
    }
    if (!rank_.empty()) waited_.insert(std::string(rank_));
    return said(text, line, kFollows);
  }

  /// Launchers end the other ranks by SIGTERM.
  Verdict exited(std::string_view number, const Line& line, Emitter& emitter) {
    const std::string code(take_number(number).text), text = attribute::code_text(code);
    if (text.empty()) return {};
    const bool root = in_root_ && depth_ < kRoot;  // torchrun's, of a rank without a cause
    emitter.attribute("exit_code", code, root);
    return said(text, line, root ? kRoot : code == "-15" || code == "143" ? kEnded : kFollows);
  }

  /// How near to the cause an error is.
  enum Depth { kNone, kEnded, kFollows, kCause, kRoot };
  struct Said {
    std::string rank, text, place;
    std::int64_t line = 0;
  };

  Verdict said(std::string_view text, const Line& line, Depth depth = kCause) {
    if (depth == kCause && follows(text)) depth = kFollows;
    const Said error{std::string(rank_), std::string(text.substr(0, 500)), std::exchange(place_, {}), line.number};
    // If the handler of an exception raised another one, the other one ended the rank.
    if (depth == kCause && handled_.erase(error.rank) > 0) {
      if (!rank_.empty()) by_rank_[error.rank] = error;
      if (depth_ == kCause && cause_.rank == error.rank) cause_ = error;
    }
    if (depth == kCause && !rank_.empty()) by_rank_.emplace(rank_, error);
    tell(error, depth);
    return {true};
  }

  void tell(const Said& error, Depth depth) {
    if (depth <= depth_) return;
    depth_ = depth;
    cause_ = error;
  }

  static constexpr std::int64_t kLongestTraceback = 1000;  // lines, other ranks' between them
  static constexpr std::int64_t kLongestUsage = 100;       // lines, other ranks' between them
  std::int64_t usage_ = 0;                                 // line of the last usage
  bool in_traceback_ = false, in_root_ = false;
  std::set<std::string> waited_;        // ranks of whose collective a watchdog tells
  std::set<std::string> handled_;       // ranks whose last exception was handled
  std::map<std::string, int> ignored_;  // the exceptions of a rank that are to come and that Python ignores
  std::set<std::string> last_ignored_;  // ranks whose last exception was one
  std::int64_t ignored_line_ = 0;       // of the last "Exception ignored"
  Depth depth_ = kNone;
  Said cause_;
  std::map<std::string, Said, std::less<>> by_rank_;  // the first cause of each
  std::int64_t traceback_line_ = 0;
  std::string_view rank_;     // the rank of the current line; empty if unknown
  std::string place_;         // file and line of the call that the traceback names last
  std::string summary_rank_;  // the rank in the current part of torchrun's summary
};

}  // namespace

std::unique_ptr<Dialect> make_failure() { return std::make_unique<Failure>(); }

}  // namespace zs::parse
