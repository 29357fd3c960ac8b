// SPDX-License-Identifier: Apache-2.0
// Writes reports as files: the text, and for Markdown the pictures.
#pragma once
#include <string>
#include <vector>

#include "figure/theme.hpp"
#include "report/document.hpp"

namespace zs::report {

enum class Format { markdown, html, pdf, json, tsv };

/// The format of that name: md, html, pdf, json, tsv.
Format format_named(const std::string& form);

/// Writes the report to `output` ("-" is stdout). Pictures of a Markdown report go to the folder `figures` ("" means
/// the folder of the output; none for stdout). Returns warnings: pictures that could not be drawn, with the reason.
/// Each file appears whole or not at all; throws Error if one cannot be written, UsageError at JSON or TSV for a report
/// that has none.
std::vector<std::string> write(const Document& document, Format format, const std::string& output,
                               const std::string& figures, const figure::Theme& theme);

/// Keeps only the sections with these titles, separated by commas, in this
/// order; a prefix of a title suffices, in any case. The verdict stays. Throws
/// UsageError, with the existing titles, at an unknown or repeated one.
void keep_sections(const std::string& titles, Document& document);

/// The folder of a report named `output`; "" for the current one.
std::string folder_of(const std::string& output);

}  // namespace zs::report
