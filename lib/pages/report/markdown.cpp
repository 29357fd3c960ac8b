// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.hpp"
#include "report/render.hpp"

namespace zs::report {
namespace {

/// Text in which nothing is taken for markup.
std::string literal(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (std::string("\\`*_[]<>|#~").find(c) != std::string::npos) result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result;
}

/// Code, also with backticks in it; in a table a bar must be escaped even there.
std::string code_span(const std::string& text, bool in_table) {
  std::size_t longest = 0, current = 0;
  std::string inside;
  for (const char c : text) {
    current = c == '`' ? current + 1 : 0;
    longest = std::max(longest, current);
    if (c == '|' && in_table) inside += '\\';
    inside += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  const std::string fence(longest + 1, '`');
  const std::string blank = longest > 0 ? " " : "";
  return fence + blank + inside + blank + fence;
}

std::string target(const std::string& path) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string result;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7F || std::string("()<>\\|%#?\"").find(c) != std::string::npos) {
      result += {'%', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      result += c;
    }
  }
  return result;
}

class Markdown {
 public:
  Markdown(const Document& document, const std::map<std::string, std::string>& pictures, std::string origins)
      : document_(document), pictures_(pictures), origins_(std::move(origins)) {}

  std::string text() {
    out_ = "# " + literal(document_.title) + "\n\n";
    if (!document_.label.empty()) out_ += "**" + literal(document_.label) + ".** ";
    out_ += inline_text(document_.verdict_text, false) + "\n";
    for (const Section& section : document_.sections) {
      out_ += "\n## " + literal(section.title) + "\n";
      for (const Block& block : section.blocks) std::visit([this](const auto& one) { write(one); }, block);
    }
    origins();
    if (!document_.tool.empty()) out_ += "\n---\n\nWritten by " + literal(document_.tool) + ".\n";
    return out_;
  }

 private:
  const Document& document_;
  const std::map<std::string, std::string>& pictures_;
  const std::string origins_;
  std::string out_;
  std::vector<std::string> targets_;

  /// The number of a link target: targets are at the end, so that tables stay readable as text.
  std::size_t reference(const std::string& target) {
    const auto found = std::ranges::find(targets_, target);
    const auto index = static_cast<std::size_t>(found - targets_.begin());
    if (found == targets_.end()) targets_.push_back(target);
    return index + 1;
  }

  std::string inline_text(const Text& text, bool in_table) {
    std::string result;
    for (const Span& span : text.spans) {
      std::string piece = span.look == Span::Look::code ? code_span(span.text, in_table) : literal(span.text);
      if (span.look == Span::Look::strong || span.look == Span::Look::bad) {
        // The markers must touch the words, or they are shown as they are.
        const std::size_t first = piece.find_first_not_of(' '), last = piece.find_last_not_of(' ');
        if (first != std::string::npos)
          piece = piece.substr(0, first) + "**" + piece.substr(first, last - first + 1) + "**" + piece.substr(last + 1);
      }
      if (span.origin >= 0) {
        const Origin& origin = document_.origins[static_cast<std::size_t>(span.origin)];
        if (!origin.link.empty()) piece = "[" + piece + "][" + std::to_string(reference(link(origin))) + "]";
      }
      result += piece;
    }
    return result;
  }

  static std::string link(const Origin& origin) {
    std::string lines = "#L" + std::to_string(origin.first_line);
    if (origin.last_line > origin.first_line) lines += "-L" + std::to_string(origin.last_line);
    return target(origin.link) + lines;
  }

  void write(const Paragraph& paragraph) { out_ += "\n" + inline_text(paragraph.text, false) + "\n"; }
  void write(const Subtitle& subtitle) { out_ += "\n### " + literal(subtitle.text) + "\n"; }
  void write(const List& list) {
    out_ += "\n";
    for (const Text& item : list.items) out_ += "- " + inline_text(item, false) + "\n";
  }
  void write(const Picture& picture) {
    const auto path = pictures_.find(picture.name);
    if (path == pictures_.end())
      out_ += "\n(Figure not drawn: " + literal(picture.caption) + ".)\n";
    else
      out_ += "\n![" + literal(picture.caption) + "](" + target(path->second) + ")\n";
  }
  void write(const Grid& grid) {
    if (!grid.title.empty()) out_ += "\n### " + literal(grid.title) + "\n";
    out_ += "\n|";
    for (const std::string& title : grid.header) out_ += " " + literal(title) + " |";
    out_ += "\n|";
    for (const bool numeric : grid.numeric) out_ += numeric ? " ---: |" : " --- |";
    out_ += "\n";
    for (const auto& row : grid.rows) {
      out_ += "|";
      for (const Cell& cell : row) out_ += " " + inline_text(cell.text, true) + " |";
      out_ += "\n";
    }
  }

  void origins() {
    if (document_.origins.empty()) return;
    out_ += "\n### Where the numbers come from\n\n";
    if (!origins_.empty()) {
      out_ += "Run, step, log and line of each are in [" + literal(origins_) + "](" + target(origins_) + ").\n";
    } else {
      out_ += "| number | value | run | step | log and line |\n| --- | ---: | --- | ---: | --- |\n";
      for (const Origin& origin : document_.origins) {
        const std::string place = origin.place().empty() ? "-" : code_span(origin.place(), true);
        out_ += "| " + literal(origin.what) + " | " + literal(origin.value) + " | " + code_span(origin.run, true) +
                " | " + literal(origin.step) + " | " +
                (origin.link.empty() ? place : "[" + place + "][" + std::to_string(reference(link(origin))) + "]") +
                " |\n";
      }
    }
    if (!targets_.empty()) out_ += "\n";
    for (std::size_t i = 0; i < targets_.size(); ++i) out_ += "[" + std::to_string(i + 1) + "]: " + targets_[i] + "\n";
  }
};

}  // namespace

std::string to_markdown(const Document& document, const std::map<std::string, std::string>& pictures,
                        const std::string& origins) {
  return Markdown(document, pictures, origins).text();
}

std::string to_origins(const Document& document) {
  std::string text = "number\tvalue\trun\tstep\tlog and line\n";
  for (const Origin& one : document.origins)
    text += printable(one.what) + "\t" + one.value + "\t" + printable(one.run) + "\t" + one.step + "\t" +
            printable(one.place()) + "\n";
  return text;
}

std::vector<const Picture*> pictures(const Document& document) {
  std::vector<const Picture*> found;
  for (const Section& section : document.sections) {
    for (const Block& block : section.blocks) {
      if (const auto* const picture = std::get_if<Picture>(&block)) found.push_back(picture);
    }
  }
  return found;
}

}  // namespace zs::report
