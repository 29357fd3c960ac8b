// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "base/process.hpp"
#include "report/render.hpp"

namespace zs::report {

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
    if (ended.status != 0 || !std::filesystem::exists(printed))
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
