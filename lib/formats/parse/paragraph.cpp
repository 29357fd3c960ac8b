// SPDX-License-Identifier: Apache-2.0
// A step, and each of its values in a line below it, as Composer and OLMo write them:
//   [batch=20/100]:
//        Train Perplexity: 58312.06
//        Train loss/train/total: 10.97
//   2025-01-01 00:00:00.000  host0:0  olmo.train:990  INFO  [step=10/10000,epoch=0]
//       optim/total_grad_norm=1.608
//       throughput/total_tokens=5,242,880
// The values end at the first line that is not indented, or no pair. Or in a box, as Baselines and Stable-Baselines
// draw it:
//   -----------------------------
//   | train/          |         |
//   |    loss_actor   | -2.2e+3 |
//   | total/steps     | 4668000 |
//   -----------------------------
#include <algorithm>
#include <deque>
#include <utility>

#include "base/number.hpp"
#include "parse/dialect.hpp"
#include "parse/names.hpp"

namespace zs::parse {
namespace {

class Paragraph : public Dialect {
 public:
  bool wants_all() const override { return line_ > 0 || box_; }

  Verdict read(const Line& line, Emitter& emitter) override {
    if (const std::string_view text = trimmed(line.text);
        text.size() >= kEdge && text.find_first_not_of('-') == std::string_view::npos) {
      const bool read = line_ > 0;
      open_box(emitter);
      return {read};
    } else if (box_) {
      if (read_row(text, line)) return {line_ > 0};
      finish(emitter);
    }
    if (line_ > 0 && line.number > line_) {
      const std::string_view pair = trimmed(line.text);
      const bool indented = !line.text.empty() && is_blank(line.text.front());
      if (indented && !pair.empty()) {
        std::string fault;
        if (read_pair(pair, line.ended, fault)) return {true, fault};
      }
      finish(emitter);
    }
    return {read_head(line, emitter)};
  }

  void finish(Emitter& emitter) override {
    if (line_ > 0 && fields_.size() > head_) emitter.record(fields_, prefix_, line_);
    line_ = 0;
    box_ = false;
  }

 private:
  static constexpr std::size_t kEdge = 10;  // characters of a box's edge, at least

  void open_box(Emitter& emitter) {
    finish(emitter);
    made_.clear();
    fields_.clear();
    prefix_ = section_ = "";
    head_ = 1;  // a step alone is no record
    box_ = true;
  }

  /// "| key | value |"; a key without a value and with '/' at its end stands before those indented below it.
  bool read_row(std::string_view text, const Line& line) {
    if (!skip(text, "|") || !text.ends_with('|') || !line.ended) return false;
    const std::size_t split = text.find('|');
    const std::string_view key = text.substr(0, split),
                           value = trimmed(text.substr(split + 1, text.size() - split - 2));
    if (split + 1 >= text.size() || value.find('|') != std::string_view::npos) return false;
    if (value.empty() && trimmed(key).ends_with('/')) section_ = trimmed(key);
    const Token number = value_of(value);
    if (number.kind == Kind::word) return true;
    std::string name = (key.starts_with("   ") ? section_ : "") + std::string(trimmed(key));
    if (column_named(name).column == "step") line_ = line.number;
    fields_.push_back({made_.emplace_back(std::move(name)), made_.emplace_back(value), number.kind});
    return true;
  }

  /// "[epoch=1][batch=5/100]:" or "[step=10/10000,epoch=0]" at the end of a line.
  bool read_head(const Line& line, Emitter& emitter) {
    std::string_view text = trimmed(line.text);
    if (text.ends_with(':')) text.remove_suffix(1);
    if (!text.ends_with(']') || !line.ended) return false;
    std::size_t begin = text.rfind('[');
    while (begin != std::string_view::npos && begin > 0 && text[begin - 1] == ']') begin = text.rfind('[', begin - 1);
    if (begin == std::string_view::npos) return false;
    std::string_view rest = text.substr(begin);
    std::vector<std::pair<std::string_view, std::string_view>> pairs;
    std::string_view total, epoch;
    bool step = false, batches = false;
    while (!rest.empty()) {
      rest.remove_prefix(1);
      const std::string_view key = take_key(rest);
      if (!skip(rest, "=")) return false;
      const std::string_view value = take_digits(rest);
      const bool counts = key == "batch" || column_named(key).column == "step";
      if (value.empty() || !(counts || key == "epoch")) return false;
      if (skip(rest, "/")) {
        const std::string_view of_all = take_digits(rest);
        if (counts) total = of_all;
      }
      step = step || counts;
      batches = batches || key == "batch";
      if (key == "epoch") epoch = value;
      pairs.emplace_back(counts ? "step" : "epoch", value);
      if (skip(rest, "]") && rest.empty()) break;
      if (rest.empty() || (rest.front() != ',' && rest.front() != '[')) return false;
    }
    if (!step) return false;
    made_.clear();
    fields_.clear();
    const bool of_epoch = batches && !epoch.empty();  // Composer's, of a training whose length is in epochs
    for (const auto& [key, value] : pairs) {
      const std::string number = of_epoch && key == "step" ? of_all_epochs(epoch, value, total) : std::string(value);
      if (!number.empty()) fields_.push_back({key, made_.emplace_back(number), Kind::integer});
    }
    head_ = fields_.size();
    prefix_ = line.text.substr(0, line.text.size() - text.size() + begin);
    line_ = line.number;
    if (!total.empty() && !of_epoch) emitter.attribute("expected_steps", total);
    return true;
  }

  /// The step of a batch of an epoch; "" if it cannot be told.
  std::string of_all_epochs(std::string_view epoch, std::string_view batch, std::string_view batches) {
    const auto e = parse_int(epoch), b = parse_int(batch), n = parse_int(batches);
    constexpr std::int64_t kMost = 1'000'000'000;
    if (!e || !b || !n || *e > kMost || *b > kMost || *n > kMost) return "";
    if (*e == 0) first_epoch_ = 0;
    return to_text((*e - first_epoch_) * *n + *b);
  }

  bool read_pair(std::string_view pair, bool ended, std::string& fault) {
    std::size_t split = pair.rfind('='), width = 1;
    if (split == std::string_view::npos) split = pair.rfind(": "), width = 2;
    if (split == std::string_view::npos || split == 0) return false;
    std::string_view key = trimmed(pair.substr(0, split)), value = trimmed(pair.substr(split + width));
    skip(key, "Train ");
    const Token number = width == 1 ? take_grouped_number(value, made_) : take_number(value);  // OLMo's have commas
    if (!number.text.empty() && !value.empty() && column_named(key).column == "loss")
      fault = "malformed value: other text within '" + std::string(key) + "'";
    if (number.text.empty() || !value.empty()) return true;  // a text
    if (!ended) {
      fault = "malformed value: the log ends within the value of '" + std::string(key) + "'";
      return true;
    }
    std::string name(key);
    std::ranges::replace(name, ' ', '_');
    fields_.push_back({made_.emplace_back(std::move(name)), made_.emplace_back(number.text), number.kind});
    return true;
  }

  std::vector<Field> fields_;
  std::deque<std::string> made_;
  std::string prefix_, section_;
  bool box_ = false;  // the lines are rows of a box
  std::int64_t first_epoch_ = 1;
  std::size_t head_ = 0;   // fields of the first line
  std::int64_t line_ = 0;  // of the step; 0: none is open
};

}  // namespace

std::unique_ptr<Dialect> make_paragraph() { return std::make_unique<Paragraph>(); }

}  // namespace zs::parse
