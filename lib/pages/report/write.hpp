// SPDX-License-Identifier: Apache-2.0
// Reports as files: the text, and for Markdown the pictures beside it.
#pragma once
#include <string>
#include <vector>

#include "figure/theme.hpp"
#include "report/document.hpp"

namespace zs::report {

enum class Format { markdown, html, json, tsv };

/// The format that a file's name asks for: .html and .htm are HTML, .json and .tsv what they say, all else is Markdown.
Format format_of(const std::string& path);

/// Writes the report to `output` ("-" is stdout). Pictures of a Markdown report go to `figures` ("" means beside the
/// output; with stdout none are drawn then). Returns warnings: pictures that could not be drawn, and why.
/// Each file appears whole or not at all; throws Error where one cannot be written, UsageError at JSON or TSV of a
/// report that has none.
std::vector<std::string> write(const Document& document, Format format, const std::string& output,
                               const std::string& figures, const figure::Theme& theme);

/// Leaves the sections of these titles, separated by commas, in this order; the beginning of a title is enough, in
/// letters of any case. The verdict stays. Throws UsageError, with the titles that there are, at one that none has, or
/// twice.
void keep_sections(const std::string& titles, Document& document);

/// The folder in which a report named `output` stands; "" for the current one.
std::string folder_of(const std::string& output);

}  // namespace zs::report
