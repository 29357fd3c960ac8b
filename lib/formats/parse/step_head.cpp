// SPDX-License-Identifier: Apache-2.0
#include "parse/step_head.hpp"

#include <algorithm>
#include <array>

#include "base/number.hpp"
#include "base/words.hpp"

namespace zs::parse {
namespace {

bool is_step_word(std::string_view word) {
  static constexpr std::array<std::string_view, 10> kWords = {
      "step", "steps", "iter", "iters", "it", "iteration", "iterations", "global_step", "batch", "update"};
  return std::ranges::find(kWords, word) != kWords.end();
}

/// Whether epochs count from 0 or from 1, if a line shows it: they begin at the number of the first batch.
std::optional<std::int64_t> first_epoch(std::int64_t epoch, std::int64_t batch, std::int64_t batches) {
  if (epoch == 0 || batch == 0) return 0;
  if (batch == batches || (epoch == 1 && batch == 1)) return 1;
  return std::nullopt;
}

bool is_mark(char c) { return is_blank(c) || std::string_view(":=#[]|,-").find(c) != std::string_view::npos; }
void skip_marks(std::string_view& text) {
  const std::size_t marks = text.find_first_not_of(" \t:=#[");
  text.remove_prefix(std::min(marks, text.size()));
}
bool ends_word(std::string_view rest) {
  if (rest.size() > 1 && rest.front() == ',' && is_digit(rest[1])) return false;  // "1,000": of which step?
  return rest.empty() || is_separator(rest.front()) || rest.starts_with(':') || rest.starts_with('-');
}

}  // namespace

std::string_view take_word(std::string_view& text) {
  std::size_t size = 0;
  const auto part = [](char c) { return is_key(c) || c == '@' || c == '%'; };
  if (!text.empty() && (is_alpha(text.front()) || text.front() == '_')) {
    while (size < text.size() && part(text[size])) ++size;
  }
  while (size > 0 && (text[size - 1] == '-' || text[size - 1] == '.')) --size;  // a dash between pairs
  const std::string_view word = text.substr(0, size);
  text.remove_prefix(size);
  return word;
}

/// Reads "step 5/12", "[step 5]", "iter: 5 of 12", "Epoch: [0][5/100]", "Epoch 1/3, step 5/12" off `rest`.
bool StepHeads::take(std::string_view& rest, StepHead& head) {
  std::string_view text = rest;
  std::string word = lower(take_word(text));
  const bool of_mmengine = (word == "epoch" || is_step_word(word)) && skip(text, "(train)");
  if (std::string_view epoch = text; word == "train" && (skip(epoch, ": ") || skip(epoch, " Epoch: "))) {
    const bool samples = text.starts_with(" Epoch");
    return take_counted(epoch, samples, rest, head);
  }
  if (word == "epoch") return take_epoch(text, of_mmengine, rest, head);
  const bool counter = word == "i" && text.starts_with('=');  // "i=5/530"
  if (!is_step_word(word) && !counter) return false;
  skip_marks(text);
  const std::string_view step = take_digits(text);
  if (step.empty() || step.size() > 15) return false;
  std::string_view ahead = text;
  skip_blanks(ahead);
  if (skip(ahead, "/") || skip(ahead, "of ")) {
    skip_blanks(ahead);
    const std::string_view total = take_digits(ahead);
    if (total.empty()) return false;
    head.total = total;
    text = ahead;
  } else if (counter) {
    return false;
  }
  if (!ends_word(text)) return false;
  head.step = step;
  rest = text;
  return true;
}

bool StepHeads::take_epoch(std::string_view text, bool of_mmengine, std::string_view& rest, StepHead& head) {
  skip_marks(text);
  const std::string_view epoch = take_digits(text);
  if (epoch.empty()) return false;
  std::string_view ahead = text;
  if (skip(ahead, "/")) take_digits(ahead);
  std::string_view counter = text;
  if (skip(counter, "]")) skip_blanks(counter);
  if (counter.size() < text.size() && skip(counter, "[")) {  // PyTorch's example: [epoch][batch/batches]
    skip_blanks(counter);
    const std::string_view batch = take_digits(counter);
    skip_blanks(counter);
    if (batch.empty() || !skip(counter, "/")) return false;
    skip_blanks(counter);
    const std::string_view batches = take_digits(counter);
    const auto e = parse_int(epoch), b = parse_int(batch), n = parse_int(batches);
    if (!e || !b || !n || *e > 1'000'000'000 || *n > 1'000'000'000) return false;
    skip(counter, "]");
    if (!first_epoch_) first_epoch_ = of_mmengine ? std::optional<std::int64_t>(1) : first_epoch(*e, *b, *n);
    if (first_epoch_) head.step = made_.emplace_back(to_text((*e - *first_epoch_) * *n + *b));
    head.epoch = epoch;
    rest = counter;
    return true;
  }
  if (!ends_word(ahead)) return false;
  const std::string_view behind = ahead;
  while (!ahead.empty() && is_mark(ahead.front())) ahead.remove_prefix(1);
  std::string_view next = ahead;
  head.epoch = epoch;
  if (const std::string word = lower(take_word(next)); is_step_word(word) || word == "i") {
    if (!take(ahead, head)) return head.epoch = {}, false;
    rest = ahead;
    head.step = of_all_epochs(head);
    head.total = {};
    return true;
  }
  rest = behind;
  if (std::string_view batch = ahead; !take_digits(batch).empty()) {  // fairseq: "epoch 001:    100 / 1234 loss=..."
    skip_blanks(batch);
    if (skip(batch, "/") && (skip_blanks(batch), !take_digits(batch).empty()) && ends_word(batch)) rest = batch;
  }
  return true;
}

/// Reads "0 [  50/1251 (  4%)]" of timm, "1 [640/60000 (1%)]" of PyTorch's example.
bool StepHeads::take_counted(std::string_view text, bool samples, std::string_view& rest, StepHead& head) {
  const std::string_view epoch = take_digits(text);
  skip_blanks(text);
  if (epoch.empty() || !skip(text, "[")) return false;
  skip_blanks(text);
  const std::string_view batch = take_digits(text);
  if (batch.empty() || !skip(text, "/")) return false;
  const auto e = parse_int(epoch), b = parse_int(batch), n = parse_int(take_digits(text));
  const std::size_t close = text.find(']');
  if (!e || !b || !n || *e > 1'000'000'000 || *n > 1'000'000'000 || close > 12) return false;
  if (!samples) head.step = made_.emplace_back(to_text(*e * *n + *b));
  if (samples) head.samples = batch;
  head.epoch = epoch;
  rest = text.substr(close + 1);
  return true;
}

/// The step, cumulative if the log restarts in each epoch: "Epoch 2, step 1/12" after "Epoch 1, step 12/12".
std::string_view StepHeads::of_all_epochs(const StepHead& head) {
  const auto epoch = parse_int(head.epoch), step = parse_int(head.step), total = parse_int(head.total);
  if (!epoch || !step || !total || *total > 1'000'000'000) return head.step;
  if (last_step_ >= 0 && *epoch > last_epoch_ && *step <= last_step_ && *step <= *total) before_ += *total;
  last_epoch_ = *epoch;
  last_step_ = *step;
  return before_ == 0 ? head.step : made_.emplace_back(to_text(before_ + *step));
}

}  // namespace zs::parse
