// SPDX-License-Identifier: Apache-2.0
#include "parse/step_line.hpp"

#include <algorithm>
#include <utility>

#include "base/number.hpp"

namespace zs::parse {

std::string step_line(const metric::Table& records, std::size_t row) {
  const auto text = [&](const metric::Column& column) {
    return column.type() == metric::Type::real ? to_plain_text(column.reals()[row]) : column.text(row);
  };
  std::string line;
  for (const auto& [key, name] : {std::pair("Epoch ", "epoch"),
                                  {", Step ", "step"},
                                  {", Loss: ", "loss"},
                                  {" sync: True time: ", "iteration_time"}})
    line += key + text(*records.find(name));
  for (const metric::Column& column : records.columns) {
    const bool written =
        column.name == "epoch" || column.name == "step" || column.name == "loss" || column.name == "iteration_time";
    if (!written && !column.absent(row)) line += " " + column.name + ": " + text(column);
  }
  return line;
}

std::string earlier_lines(std::string_view log, std::int64_t done) {
  std::string kept;
  while (!log.empty()) {
    const std::size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    const bool result = line.starts_with("Summary: ") || line.starts_with("state_digest: ");
    const bool torn =
        end == std::string_view::npos && line.starts_with(std::string_view("Epoch ").substr(0, line.size()));
    if (result || torn) continue;
    const auto step = starts_step(line) ? read_step(line, true) : std::nullopt;
    const bool later =
        step && (step->fields.empty() || parse_int(step->fields.front().value).value_or(done + 1) > done);
    if (!later) kept.append(line) += '\n';
  }
  return kept;
}

std::string quoted_start(std::string_view text) {
  std::string start(text.substr(0, 24));
  for (char& c : start) {
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  }
  return "'" + start + (text.size() > 24 ? "...'" : "'");
}

bool starts_step(std::string_view text) { return skip(text, "Epoch ") && !text.empty() && is_digit(text.front()); }

namespace {

/// Whether `rest`, after a value, may be part of it. A step line of another writer is not.
bool glued(std::string_view rest) {
  if (number_ends(rest) || starts_step(rest)) return false;
  return !skip(rest, ",") || !starts_step(rest);
}

/// Reads "key: value" pairs from step.rest up to anything else.
void read_pairs(Step& step) {
  std::string_view& rest = step.rest;
  while (true) {
    std::string_view ahead = rest;
    skip_blanks(ahead);
    if (ahead.empty() || starts_step(ahead)) {
      rest = ahead;
      return;
    }
    if (!is_alpha(ahead.front())) break;
    const std::string_view key = take_key(ahead);
    if (!skip(ahead, ":")) break;
    skip_blanks(ahead);
    Token value = take_number(ahead);
    if (value.text.empty()) {
      for (const std::string_view word :
           {std::string_view("True"), std::string_view("False"), std::string_view("None")}) {
        if (!value.text.empty() || !ahead.starts_with(word)) continue;
        value = {ahead.substr(0, word.size()), Kind::word};
        ahead.remove_prefix(word.size());
      }
    }
    if (value.text.empty()) break;
    for (unsigned i = 0; i < kCore.size(); ++i) {
      if (key == kCore[i]) step.core |= 1U << i;
    }
    step.fields.push_back({key, value.text, value.kind});
    rest = ahead;
    step.in_doubt = glued(rest);
    if (step.in_doubt) break;
    skip(rest, ",");
  }
  step.torn = true;
}

}  // namespace

std::optional<Step> read_step(std::string_view text, bool ended) {
  Step step;
  std::string_view& rest = step.rest;
  rest = text;
  Token epoch;
  if (skip(rest, "Epoch ")) {
    epoch = take_number(rest);
    const bool whole = epoch.kind == Kind::integer && skip(rest, ",");
    skip_blanks(rest);
    if (const std::size_t at = rest.find(", Step "); at < 24 && (!whole || is_digit(rest.front()))) {
      step.fault = "no epoch number but " + quoted_start(text);
      return step;
    }
    if (!whole) return {};
    const std::string_view word = "Step ";
    const bool cut = rest.size() < word.size() && word.starts_with(rest);
    if (cut && (!ended || !rest.empty())) {
      step.fault = "it ends in " + quoted_start(text);
      return step;
    }
  }
  if (!skip(rest, "Step ")) return {};
  const Token number = take_number(rest);
  if (number.text.empty() && epoch.text.empty()) return {};
  if (number.kind != Kind::integer) {
    step.fault = "no step number after 'Step'";
    return step;
  }
  const bool comma = skip(rest, ",");
  skip_blanks(rest);
  if (!comma || !skip(rest, "Loss:")) {
    if (epoch.text.empty()) return {};
    step.fault = "no 'Loss:' after step " + std::string(number.text);
    return step;
  }
  skip_blanks(rest);
  const Token loss = take_number(rest);
  if (loss.text.empty()) {
    step.fault = "no number after 'Loss:' but " + quoted_start(rest);
    return step;
  }
  step.fields.reserve(12);
  step.fields.push_back({"step", number.text, Kind::integer});
  if (!epoch.text.empty()) step.fields.push_back({"epoch", epoch.text, Kind::integer});
  step.fields.push_back({"loss", loss.text, loss.kind});
  step.torn = step.in_doubt = glued(rest);
  if (step.in_doubt) return step;
  skip(rest, ",");
  read_pairs(step);
  return step;
}

}  // namespace zs::parse
