// SPDX-License-Identifier: Apache-2.0
// How a run ended, where it ended badly:
//   Traceback (most recent call last):  ...  torch.cuda.OutOfMemoryError: CUDA out of memory. ...
//   srun: error: node07: task 3: Exited with exit code 1
//   slurmstepd: error: *** JOB 4711 ON node07 CANCELLED AT 2026-11-20T04:12:00 DUE TO TIME LIMIT ***
//     exitcode  : -9 (pid: 4711)
//   [rank1]:[E626 ... ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(...)
//   ran for ... usage: train.py [-h] [--lr LR]  ...  train.py: error: argument --lr: invalid float value: 'fast'
// The first of them is the cause as far as a log can tell; it becomes `error`, with `error_line`.
#include <algorithm>

#include "base/number.hpp"
#include "parse/dialect.hpp"
#include "parse/exception.hpp"

namespace zs::parse {
namespace {

/// "train.py: error: argument --lr: ...", by Python's argparse; click says "Error: No such option: --lr".
bool is_usage_error(std::string_view text) {
  const std::size_t colon = text.find(": error: ");
  return text.starts_with("Error: ") || (colon != std::string_view::npos && colon > 0 &&
                                         text.substr(0, colon).find_first_of(" \t:") == std::string_view::npos);
}

class Failure : public Dialect {
 public:
  bool wants_all() const override { return in_traceback_; }

  Verdict read(const Line& line, Emitter& emitter) override {
    const auto [rank, text] = rank_line(trimmed(line.text));
    rank_ = rank;
    if (std::string_view rest = text; skip(rest, "rank") && (skip_blanks(rest), skip(rest, ": "))) {
      summary_rank_ = std::string(take_digits(rest));  // torchrun's: "rank      : 1 (local_rank: 1)", before "exitcode"
      return {};
    }
    if (begins_traceback(text)) {
      in_traceback_ = true;
      traceback_line_ = line.number;
      return {true};
    }
    if (in_traceback_ && line.number > traceback_line_ + kLongestTraceback) in_traceback_ = false;
    if (std::string_view rest = text; skip(rest, "usage: ") || skip(rest, "Usage: ")) usage_ = line.number;
    if (usage_ > 0 && line.number <= usage_ + kLongestUsage && is_usage_error(text)) {
      usage_ = 0;
      return said(text, line, emitter);
    }
    if (in_traceback_ && is_exception(text)) {
      in_traceback_ = false;
      return said(text, line, emitter);
    }
    if (const std::size_t at = text.find("Watchdog caught collective operation timeout: ");
        at != std::string_view::npos)
      return waited(text.substr(at), text.substr(0, at), line, emitter);
    if (const std::size_t at = text.find("Exited with exit code "); at != std::string_view::npos) {
      if (const std::size_t task = text.find("task "); task < at) {  // "srun: error: node07: task 3: Exited ..."
        std::string_view number = text.substr(task + 5);
        rank_ = take_digits(number);
        if (!number.starts_with(":")) rank_ = {};
      }
      return exited(text.substr(at + 22), text, line, emitter);
    }
    if (std::string_view rest = text; skip(rest, "exitcode") && (skip_blanks(rest), skip(rest, ": "))) {
      rank_ = summary_rank_;
      return exited(rest, text, line, emitter);
    }
    if (std::string_view rest = text; skip(rest, "Exit code:")) return exited(trimmed(rest), text, line, emitter);
    const bool slurm = text.starts_with("slurmstepd: error: ") || text.starts_with("srun: error: ");
    if (slurm && (text.find(" CANCELLED ") != std::string_view::npos || text.find("oom") != std::string_view::npos ||
                  text.find("Killed") != std::string_view::npos)) {
      return said(text, line, emitter);
    }
    return {};
  }

 private:
  /// NCCL's watchdog; PyTorch before 2.3 names the rank in the line alone.
  Verdict waited(std::string_view text, std::string_view before, const Line& line, Emitter& emitter) {
    if (const std::size_t at = before.rfind("[Rank "); rank_.empty() && at != std::string_view::npos) {
      std::string_view number = before.substr(at + 6);
      rank_ = take_digits(number);
    }
    return said(text, line, emitter);
  }

  Verdict exited(std::string_view number, std::string_view text, const Line& line, Emitter& emitter) {
    const std::string_view code = take_number(number).text;
    if (!parse_int(code) || code == "0") return {};
    emitter.attribute("exit_code", code);
    return said(text, line, emitter);
  }

  Verdict said(std::string_view text, const Line& line, Emitter& emitter) {
    // The first error has the rank, or the rank is unknown.
    if (!told_ && !rank_.empty()) emitter.attribute("error_rank", rank_);
    told_ = true;
    emitter.attribute("error", text.substr(0, 500));
    emitter.attribute("error_line", to_text(line.number));
    emitter.attribute("exit_state", "failed", true);
    return {true};
  }

  static constexpr std::int64_t kLongestTraceback = 1000;  // lines, other ranks' between them
  static constexpr std::int64_t kLongestUsage = 100;       // lines, other ranks' between them
  std::int64_t usage_ = 0;                                 // line of the last usage
  bool in_traceback_ = false, told_ = false;
  std::int64_t traceback_line_ = 0;
  std::string_view rank_;     // the rank of the current line; empty if unknown
  std::string summary_rank_;  // the rank in the current part of torchrun's summary
};

}  // namespace

std::unique_ptr<Dialect> make_failure() { return std::make_unique<Failure>(); }

}  // namespace zs::parse
