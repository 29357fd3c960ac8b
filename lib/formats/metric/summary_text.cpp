// SPDX-License-Identifier: Apache-2.0
#include "metric/summary_text.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "metric/escape.hpp"
#include "metric/file.hpp"

namespace zs::metric {
namespace {

constexpr std::string_view kSummaryMagic = "#zs-metrics 1 summary\n";

std::string text_of(const std::string& head, const Table& table) {
  std::string text = "#table " + head + "\n", header;
  for (const Column& column : table.columns) {
    text += "#: " + escaped_name(column.name) + " " + std::string(name(column.type()));
    text += (column.unit.empty() ? "" : " " + escaped_name(column.unit)) + "\n";
    header += (header.empty() ? "" : "\t") + escaped(column.name);
  }
  if (!table.columns.empty()) text += header + "\n";
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      text += (c ? "\t" : "") + escaped(table.columns[c].text(row));
    }
    text += "\n";
  }
  return text;
}

class Reader {
 public:
  Reader(const std::string& name, std::int64_t line) : name_(name), line_(line - 1) {}

  Store read(std::string_view text) {
    while (!text.empty()) {
      ++line_;
      const std::size_t end = text.find('\n');
      if (end == std::string_view::npos) fail("the input is cut off here (no newline): was its writer stopped?");
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.starts_with("#zs-metrics ")) continue;
      if (!started_ && line.starts_with("#= "))
        attribute(line.substr(3));
      else if (line.starts_with("#table "))
        begin(line.substr(7));
      else if (table_ && !header_ && line.starts_with("#: "))
        declare(line.substr(3));
      else if (table_ && !table_->columns.empty())
        header_ ? row(line) : header(line);
      else
        fail("expected '#table', the declaration of a column, or a header");
    }
    end();
    return std::move(store_);
  }

 private:
  const std::string& name_;
  std::int64_t line_;
  Store store_;
  Table* table_ = nullptr;
  bool started_ = false, header_ = false;

  [[noreturn]] void fail(const std::string& what) const { throw Error(name_, line_, what); }

  std::string plain(std::string_view text) const {
    auto found = unescaped(text);
    if (!found) fail("unknown escape in '" + std::string(text.substr(0, 40)) + "'");
    return std::move(*found);
  }

  static std::string_view take(std::string_view& text, char mark) {
    const std::size_t at = text.find(mark);
    const std::string_view head = text.substr(0, at);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
    return head;
  }

  void attribute(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size() && text[at] != '=') at += text[at] == '\\' ? 2 : 1;
    if (at == 0 || at >= text.size()) fail("expected '#= KEY=VALUE'");
    store_.attributes[plain(text.substr(0, at))] = plain(text.substr(at + 1));
  }

  void end() {
    if (table_ && !table_->columns.empty() && !header_) fail("a table without its header");
  }

  void begin(std::string_view head) {
    end();
    started_ = true;
    header_ = false;
    const std::string_view kind = take(head, ' ');
    const std::string key = plain(head);
    if (kind == "summary" && key.empty() && !store_.summary)
      table_ = &store_.summary.emplace();
    else if (kind == "curves" && store_.curves.count(key) == 0)
      table_ = &store_.curves[key];
    else if (kind == "tables" && store_.tables.count(key) == 0)
      table_ = &store_.tables[key];
    else
      fail("expected '#table summary', 'curves NAME' or 'tables NAME', each once");
  }

  void declare(std::string_view text) {
    const std::string column = plain(take(text, ' '));
    const auto type = type_named(take(text, ' '));
    if (column.empty() || !type) fail("expected '#: COLUMN int|real|text [UNIT]'");
    table_->columns.emplace_back(column, plain(text), *type);
  }

  void header(std::string_view line) {
    for (std::size_t c = 0; c < table_->columns.size(); ++c) {
      if (plain(take(line, '\t')) != table_->columns[c].name) fail("a header that differs from what was declared");
    }
    if (!line.empty()) fail("a header that differs from what was declared");
    header_ = true;
  }

  void row(std::string_view line) {
    const auto fields = static_cast<std::size_t>(std::ranges::count(line, '\t')) + 1;
    if (fields != table_->columns.size())
      fail("expected " + std::to_string(table_->columns.size()) + " fields as in the header, found " +
           std::to_string(fields));
    for (Column& column : table_->columns) {
      const std::string cell = plain(take(line, '\t'));
      if (!column.append(cell))
        fail("column '" + column.name + "' is " + std::string(metric::name(column.type())) + ", found '" +
             cell.substr(0, 40) + "'");
    }
  }
};

}  // namespace

std::string to_summary_text(const Store& store) {
  std::string text(kSummaryMagic);
  for (const auto& [key, value] : store.attributes) text += "#= " + escaped_name(key) + "=" + escaped(value) + "\n";
  if (store.summary) text += text_of("summary", *store.summary);
  for (const auto& [key, table] : store.tables) text += text_of("tables " + escaped_name(key), table);
  for (const auto& [key, table] : store.curves) text += text_of("curves " + escaped_name(key), table);
  return text + to_tsv(store.runs);
}

bool is_summary_text(std::string_view text) {
  return text.starts_with(kSummaryMagic.substr(0, kSummaryMagic.size() - 1));
}

Store read_summary_text(std::string_view text, const std::string& name, std::int64_t line) {
  return Reader(name, line).read(text);
}

}  // namespace zs::metric
