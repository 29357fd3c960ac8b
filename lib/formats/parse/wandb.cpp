// SPDX-License-Identifier: Apache-2.0
// Console output of the W&B client:
//   wandb: Run data is saved locally in /home/me/wandb/run-20250617_042737-rbjz5u9t
//   wandb: Run summary:
//   wandb:                          train/loss 1.62843
#include <algorithm>

#include "parse/dialect.hpp"

namespace zs::parse {
namespace {

class Wandb : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    const std::size_t at = line.text.find("wandb: ");
    if (at == std::string_view::npos) return {};
    std::string_view text = line.text.substr(at + 7);
    const bool whole = line.ended;
    if (const std::string_view title = trimmed(text); title == "Run summary:" || title == "Run history:") {
      in_summary_ = title == "Run summary:";
      in_history_ = !in_summary_;
      return {true};
    }
    for (const std::string_view head :
         {std::string_view("Run data is saved locally in "), std::string_view("wandb sync ")}) {
      const std::size_t path = text.find(head);
      if (path == std::string_view::npos || !whole) continue;
      const std::string_view run = trimmed(text.substr(path + head.size()));
      const std::size_t dash = run.rfind('-');
      if (dash == std::string_view::npos || run.find("run-") == std::string_view::npos) continue;
      emitter.attribute("wandb_run", run.substr(dash + 1));
      return {true};
    }
    if (skip(text, "Syncing run ")) {
      if (whole) emitter.attribute("wandb_run_name", trimmed(text));
      return {whole};
    }
    if (const std::size_t url = text.find("View run at http"); url != std::string_view::npos) {
      if (whole) emitter.attribute("wandb_url", trimmed(text.substr(url + 12)));
      return {whole};
    }
    if (in_summary_ || in_history_) return read_value(text, whole, emitter);
    return {};
  }

 private:
  /// A row of the summary, "KEY VALUE", right-aligned; for the history the console has only a sparkline, which is not
  /// data.
  Verdict read_value(std::string_view text, bool whole, Emitter& emitter) {
    text = trimmed(text);
    const std::size_t blank = text.find(' ');
    if (text.empty() || blank == std::string_view::npos) {
      in_summary_ = in_summary_ && !text.empty();
      return {};
    }
    const std::string_view key = text.substr(0, blank), value = trimmed(text.substr(blank));
    const bool is_plain_key = std::ranges::all_of(key, is_key);
    if (!is_plain_key || value.find("http") != std::string_view::npos) {
      in_summary_ = in_history_ = false;
      return {};
    }
    if (in_summary_ && !whole)
      return {false, "malformed W&B summary: the log ends within the value of '" + std::string(key) + "'"};
    if (in_summary_) emitter.attribute("wandb.summary." + std::string(key), value, true);
    return {true};
  }

  bool in_summary_ = false, in_history_ = false;
};

}  // namespace

std::unique_ptr<Dialect> make_wandb() { return std::make_unique<Wandb>(); }

}  // namespace zs::parse
