// SPDX-License-Identifier: Apache-2.0
// The style and the script that stand inside an HTML report.
#pragma once

namespace zs::report {

extern const char* const kStyle;   ///< CSS; colours are the variables of figure::css
extern const char* const kScript;  ///< JavaScript: sorts tables, shows values under the pointer

/// Of the page of all runs (runs_page.hpp), beside kStyle: its own style, its controls, and what makes them work.
extern const char* const kRunsStyle;
extern const char* const kRunsBody;
extern const char* const kRunsScript;

}  // namespace zs::report
