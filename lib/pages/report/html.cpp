// SPDX-License-Identifier: Apache-2.0
#include <re2/re2.h>

#include <cctype>
#include <cmath>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/process.hpp"
#include "figure/svg.hpp"
#include "figure/thin.hpp"
#include "report/render.hpp"

namespace zs::report {
namespace {

using figure::escaped;

constexpr double kWide = 1000, kHalf = 520, kNarrow = 380;  // figures for a screen, two next to each other, a phone

/// "Data quality" -> "data-quality".
std::string anchor(const std::string& title) {
  std::string id;
  for (const char c : title)
    id += std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                                                      : '-';
  return id;
}

/// "95 %" and "7.15e-07" stay on one line.
std::string unbroken(std::string text) {
  static const re2::RE2 kPercent("([0-9]) %"), kSmall("([0-9][0-9.]*e-[0-9]+)");
  re2::RE2::GlobalReplace(&text, kPercent, "\\1&nbsp;%");
  re2::RE2::GlobalReplace(&text, kSmall, "<span class=\"n\">\\1</span>");
  return text;
}

/// Long names in a cell may be broken behind "_", "," and "/" alone.
std::string breakable(std::string text) {
  for (std::size_t at = 0; (at = text.find_first_of("_,/", at)) != std::string::npos; at += 6)
    text.insert(at + 1, "<wbr>");
  return text;
}

/// The beginning of a folded part. Print opens it, unless it would take pages.
std::string folded(const std::string& title, std::size_t rows) {
  return std::string("<details") + (rows > 100 ? " class=\"pages\"" : "") + "><summary>" + escaped(title) +
         "</summary>\n";
}

class Html {
 public:
  Html(const Document& document, const figure::Theme& theme) : document_(document), theme_(theme) {}

  std::string text() {
    out_ = html_head(document_.title, theme_, kStyle);
    out_ += "<main>\n<h1>" + escaped(document_.title) + "</h1>\n";
    const char* const look = document_.verdict == Verdict::good  ? "good"
                             : document_.verdict == Verdict::bad ? "bad"
                                                                 : "open";
    const char* const sign = document_.verdict == Verdict::good  ? "\xE2\x9C\x93 "
                             : document_.verdict == Verdict::bad ? "\xE2\x9C\x97 "
                                                                 : "";
    out_ += std::string("<div class=\"verdict ") + look + "\"><span class=\"label\">" + sign +
            escaped(document_.label) + "</span>\n<p>" + inline_text(document_.verdict_text) + "</p></div>\n<nav>";
    for (const Section& section : document_.sections)
      out_ += "<a href=\"#" + anchor(section.title) + "\">" + escaped(section.title) + "</a> ";
    out_ += "</nav>\n";
    for (const Section& section : document_.sections) {
      out_ += "<section>\n<h2 id=\"" + anchor(section.title) + "\">" + escaped(section.title) + "</h2>\n";
      bool row = false;  // of half pictures
      for (const Block& block : section.blocks) {
        const auto* const picture = std::get_if<Picture>(&block);
        if (const bool half = picture && picture->half; half != row)
          out_ += (row = half) ? "<div class=\"row\">\n" : "</div>\n";
        std::visit([this](const auto& one) { write(one); }, block);
      }
      out_ += row ? "</div>\n</section>\n" : "</section>\n";
    }
    origins();
    if (!document_.tool.empty()) out_ += "<footer>Written by " + escaped(document_.tool) + ".</footer>\n";
    out_ += std::string("</main>\n<script>") + kScript + "</script>\n</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  const Document& document_;
  const figure::Theme& theme_;
  std::string out_;

  std::string inline_text(const Text& text, bool cell = false) const {
    std::string result;
    for (const Span& span : text.spans) {
      std::string piece = unbroken(cell ? breakable(escaped(span.text)) : escaped(span.text));
      if (span.look == Span::Look::code) piece = "<code>" + piece + "</code>";
      if (span.look == Span::Look::strong) piece = "<strong>" + piece + "</strong>";
      if (span.look == Span::Look::bad) piece = "<span class=\"bad\">" + piece + "</span>";
      if (span.origin >= 0) {
        const Origin& origin = document_.origins[static_cast<std::size_t>(span.origin)];
        std::string tip = origin.value + ": run " + origin.run;
        if (!origin.step.empty()) tip += ", step " + origin.step;
        if (!origin.place().empty()) tip += ", " + origin.place();
        piece = "<a class=\"from\" href=\"#from-" + std::to_string(span.origin) + "\" title=\"" + escaped(tip) + "\">" +
                piece + "</a>";
      }
      result += piece;
    }
    return result;
  }

  void write(const Paragraph& paragraph) { out_ += "<p>" + inline_text(paragraph.text) + "</p>\n"; }
  void write(const Subtitle& subtitle) { out_ += "<h3>" + escaped(subtitle.text) + "</h3>\n"; }
  void write(const List& list) {
    out_ += "<ul>\n";
    for (const Text& item : list.items) out_ += "<li>" + inline_text(item) + "</li>\n";
    out_ += "</ul>\n";
  }
  void write(const Picture& picture) {
    const std::string name = picture.figure.title;
    const double wide = picture.half ? kHalf : kWide;
    out_ += "<figure>\n" + figure::svg_element(figure::scene(picture.figure, {wide}), theme_, name, "figure wide") +
            figure::svg_element(figure::scene(picture.figure, {kNarrow}), theme_, name, "figure narrow");
    std::string curves;
    bool any = false;
    for (const figure::Panel& panel : picture.figure.panels) {
      curves += (curves.empty() ? "" : ",") + figure::curves_json(panel, theme_);
      any = any || !panel.series.empty();
    }
    if (any) out_ += "<script type=\"application/json\">[" + curves + "]</script>\n";
    out_ += "<figcaption>" + escaped(picture.caption) + "</figcaption>\n</figure>\n";
  }
  void write(const Grid& grid) {
    if (grid.folded)
      out_ += folded(grid.title, grid.rows.size());
    else if (!grid.title.empty())
      out_ += "<h3>" + escaped(grid.title) + "</h3>\n";
    const bool sortable = grid.rows.size() > 1 && grid.header.size() > 2;
    out_ += std::string("<div class=\"scroll\"><table") + (sortable ? " class=\"sortable\"" : "") + "><thead><tr>";
    for (std::size_t i = 0; i < grid.header.size(); ++i) {
      out_ += std::string("<th scope=\"col\"") + (grid.numeric[i] ? " class=\"n\"" : "") + ">" +
              unbroken(escaped(grid.header[i])) + "</th>";
    }
    out_ += "</tr></thead><tbody>\n";
    for (const auto& row : grid.rows) {
      out_ += "<tr>";
      for (std::size_t i = 0; i < row.size(); ++i) {
        const bool wide = row[i].text.plain().size() > 48;
        out_ += std::string("<td") + (grid.numeric[i] ? " class=\"n\"" : wide ? " class=\"long\"" : "");
        if (std::isfinite(row[i].key)) out_ += " data-key=\"" + to_text(row[i].key) + "\"";
        out_ += ">" + inline_text(row[i].text, !grid.numeric[i]) + "</td>";
      }
      out_ += "</tr>\n";
    }
    out_ += grid.folded ? "</tbody></table></div></details>\n" : "</tbody></table></div>\n";
  }

  void origins() {
    if (document_.origins.empty()) return;
    out_ += folded("Where the numbers come from", document_.origins.size());
    out_ +=
        "<div class=\"scroll\"><table "
        "class=\"sortable\"><thead><tr><th scope=\"col\">number</th>"
        "<th scope=\"col\" class=\"n\">value</th><th scope=\"col\">run</th><th scope=\"col\" class=\"n\">step</th>"
        "<th scope=\"col\">log and line</th></tr></thead><tbody>\n";
    for (std::size_t i = 0; i < document_.origins.size(); ++i) {
      const Origin& origin = document_.origins[i];
      const std::string place = origin.place().empty() ? "-" : "<code>" + escaped(origin.place()) + "</code>";
      out_ += "<tr id=\"from-" + std::to_string(i) + "\"><td>" + escaped(origin.what) + "</td><td class=\"n\">" +
              escaped(origin.value) + "</td><td><code>" + escaped(origin.run) + "</code></td><td class=\"n\">" +
              escaped(origin.step) + "</td><td>" +
              (origin.link.empty() ? place : "<a href=\"" + target(origin.link) + "\">" + place + "</a>") +
              "</td></tr>\n";
    }
    out_ += "</tbody></table></div></details>\n";
  }

  /// A relative path as an address: nothing in it is taken for a scheme, a query or markup.
  static std::string target(const std::string& path) {
    static constexpr char kHex[] = "0123456789ABCDEF";
    std::string result = path.starts_with("../") ? "" : "./";
    for (const char c : path) {
      const auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) || std::string("/._-~+=,@").find(c) != std::string::npos)
        result += c;
      else
        result += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
    return result;
  }
};

}  // namespace

std::string html_head(const std::string& title, const figure::Theme& theme, const std::string& style,
                      const std::string& meta) {
  const std::string light = figure::css(theme, false) + "--tint:#F3F4F6;--link:#0B57A4;--good:#00734F;";
  const std::string dark = figure::css(theme, true) + "--tint:#20242A;--link:#8AB8F0;--good:#4CC79A;";
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<meta name=\"color-scheme\" "
         "content=\"light dark\">\n"
         // The browser enforces that nothing is fetched, whatever a log held.
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
         "script-src 'unsafe-inline'\">\n" +
         meta + "<title>" + escaped(title) + "</title>\n<style>\n:root{" + light +
         "}\n@media screen and (prefers-color-scheme:dark){:root{" + dark + "}}" + style +
         "</style>\n</head>\n<body>\n";
}

std::string to_html(const Document& document, const figure::Theme& theme) { return Html(document, theme).text(); }

std::string to_pdf(const Document& document, const figure::Theme& theme) {
  constexpr double kLongest = 120;  // s
  const TemporaryFolder folder;
  const std::string page = folder.file("report.html"), printed = folder.file("report.pdf");
  write_file(page, to_html(document, theme));
  for (const char* const browser : {"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}) {
    Program program{{browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer",
                     "--user-data-dir=" + folder.file("profile"), "--print-to-pdf=" + printed, "file://" + page}};
    program.captured = true;
    program.seconds = kLongest;
    const Ended ended = run(program);
    if (ended.status == 127) continue;
    if (ended.status != 0 || !is_there(printed))
      throw Error(std::string(browser) + " did not print the report (status " + std::to_string(ended.status) +
                  "): write .html instead, and print it in a browser");
    std::string bytes = Input(printed).read_all();
    if (!bytes.starts_with("%PDF"))
      throw Error(std::string(browser) + " printed an incomplete report: write .html instead");
    return bytes;
  }
  throw Error("a report in PDF is printed by chromium, which is not installed: install it, or write .html");
}

}  // namespace zs::report
