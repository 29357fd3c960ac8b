// SPDX-License-Identifier: Apache-2.0
// Renders a report: Markdown with separate pictures, or one self-contained HTML file.
#pragma once
#include <map>
#include <string>

#include "figure/theme.hpp"
#include "report/document.hpp"

namespace zs::report {

/// GitHub's Markdown. `pictures` maps the name of each picture to its path relative to the report; a missing one is
/// reported as not drawn. Numbers link to the lines of their logs, if these were found. The origins of all numbers are
/// in the file `origins`, or, if that is "", in a table at the end.
std::string to_markdown(const Document& document, const std::map<std::string, std::string>& pictures,
                        const std::string& origins = "");

/// The origins of all numbers: number, value, run, step, log and line, separated by tabs under a header.
std::string to_origins(const Document& document);

/// One self-contained HTML file, which loads nothing. Figures are inline, numbers link to the list of origins.
std::string to_html(const Document& document, const figure::Theme& theme);

/// The HTML file as chromium prints it. Throws Error if no browser is installed.
std::string to_pdf(const Document& document, const figure::Theme& theme);

/// The beginning of every page, up to <body>: it forbids loading, and defines the theme's colours as variables for
/// `style`.
std::string html_head(const std::string& title, const figure::Theme& theme, const std::string& style,
                      const std::string& meta = "");

/// The names and figures of all pictures, in order.
std::vector<const Picture*> pictures(const Document& document);

// The style and the script inside an HTML report.

extern const char* const kStyle;   ///< CSS; colours are the variables of figure::css
extern const char* const kScript;  ///< JavaScript: sorts tables, shows values under the pointer

/// For the page of all runs (runs_page.hpp), in addition to kStyle: its style, its controls, and its script.
extern const char* const kRunsStyle;
extern const char* const kRunsBody;
extern const char* const kRunsScript;

}  // namespace zs::report
