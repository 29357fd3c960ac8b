// SPDX-License-Identifier: Apache-2.0
// A report's text: Markdown with pictures beside it, or one HTML file that needs nothing else.
#pragma once
#include <map>
#include <string>

#include "figure/theme.hpp"
#include "report/document.hpp"

namespace zs::report {

/// GitHub's Markdown. `pictures` maps the name of each picture to its path as the report refers to it; one that is
/// missing there is said not to have been drawn. Numbers link to the lines of their logs, where these were found. Where
/// every number comes from is in the file `origins` beside it, or, if that is "", in a table at the end.
std::string to_markdown(const Document& document, const std::map<std::string, std::string>& pictures,
                        const std::string& origins = "");

/// Where every number comes from: number, value, run, step, log and line, separated by tabs under a header.
std::string to_origins(const Document& document);

/// One self-contained HTML file: no request leaves it. Figures are inline, numbers link to the list of origins.
std::string to_html(const Document& document, const figure::Theme& theme);

/// What every page begins with, up to <body>: it may fetch nothing, and has the theme's colours as variables of
/// `style`.
std::string html_head(const std::string& title, const figure::Theme& theme, const std::string& style,
                      const std::string& meta = "");

/// The names and figures of all pictures, in order.
std::vector<const Picture*> pictures(const Document& document);

}  // namespace zs::report
