// SPDX-License-Identifier: Apache-2.0
#include "report/write.hpp"

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/words.hpp"
#include "figure/picture.hpp"
#include "report/render.hpp"

namespace zs::report {
namespace {

namespace fs = std::filesystem;

/// Draws every picture into `folder` as PNG and returns their paths as the report at `report_folder` refers to them.
std::map<std::string, std::string> draw(const Document& document, const fs::path& folder, const fs::path& report_folder,
                                        const figure::Theme& theme, std::vector<std::string>& warnings) {
  std::map<std::string, std::string> paths;
  std::error_code error;
  for (const Picture* const picture : pictures(document)) {
    const fs::path path = folder / (picture->name + ".png");
    std::string bytes;
    try {
      bytes = figure::picture(picture->figure, theme, figure::Format::png);
    } catch (const Error& failure) {
      // A report without a picture is worth more than none: its tables hold the same numbers.
      warnings.push_back(path.string() + ": not drawn: " + failure.what());
      continue;
    }
    write_file(path.string(), bytes);
    fs::path relative =
        fs::relative(fs::absolute(path), fs::absolute(report_folder.empty() ? "." : report_folder), error);
    paths[picture->name] = (error || relative.empty() ? path : relative).generic_string();
  }
  return paths;
}

}  // namespace

Format format_named(const std::string& form) {
  if (form == "json") return Format::json;
  if (form == "tsv") return Format::tsv;
  if (form == "pdf") return Format::pdf;
  return form == "html" ? Format::html : Format::markdown;
}

void keep_sections(const std::string& titles, Document& document) {
  std::vector<Section> kept;
  for (const std::string& wanted : split(titles, ",")) {
    const auto found = std::ranges::find_if(document.sections, [&](const Section& section) {
      return !wanted.empty() && lower(section.title).starts_with(lower(wanted));
    });
    if (found == document.sections.end())
      throw UsageError("this report has no section '" + wanted + "'; it has " +
                       zs::joined(document.sections, ", ", &Section::title));
    if (std::ranges::any_of(kept, [&](const Section& section) { return section.title == found->title; }))
      throw UsageError("section '" + found->title + "' is asked for twice");
    kept.push_back(*found);
  }
  document.sections = std::move(kept);
}

std::string folder_of(const std::string& output) {
  return output == "-" ? "" : fs::path(output).parent_path().string();
}

std::vector<std::string> write(const Document& document, Format format, const std::string& output,
                               const std::string& figures, const figure::Theme& theme) {
  std::vector<std::string> warnings;
  if (format == Format::json) {
    if (document.data.empty())
      throw UsageError("only --kind revision and --gradients are written as JSON; of a summary it is zs-aggregate's");
    write_file(output, document.data);
    return warnings;
  }
  if (format == Format::tsv) {
    if (document.rows.empty())
      throw UsageError("only --gradients are written as TSV; of a summary it is zs-aggregate's");
    write_file(output, document.rows);
    return warnings;
  }
  if (format == Format::html || format == Format::pdf) {
    write_file(output, format == Format::html ? to_html(document, theme) : to_pdf(document, theme));
    return warnings;
  }
  const std::string folder = folder_of(output);
  std::map<std::string, std::string> paths;
  if (!figures.empty()) {
    std::error_code error;
    fs::create_directories(figures, error);
    if (error) throw Error(figures, 0, "cannot make the folder for figures: " + error.message());
  }
  if (output != "-" || !figures.empty())
    paths = draw(document, figures.empty() ? folder : figures, folder, theme, warnings);
  std::string origins;
  if (output != "-" && !document.origins.empty()) {
    origins = fs::path(output).stem().string() + "_numbers.tsv";
    write_file((fs::path(folder) / origins).string(), to_origins(document));
  }
  write_file(output, to_markdown(document, paths, origins));
  return warnings;
}

}  // namespace zs::report
