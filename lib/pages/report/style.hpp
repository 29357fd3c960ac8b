// SPDX-License-Identifier: Apache-2.0
// The style and the script inside an HTML report.
#pragma once

namespace zs::report {

extern const char* const kStyle;   ///< CSS; colours are the variables of figure::css
extern const char* const kScript;  ///< JavaScript: sorts tables, shows values under the pointer

/// For the page of all runs (runs_page.hpp), in addition to kStyle: its style, its controls, and its script.
extern const char* const kRunsStyle;
extern const char* const kRunsBody;
extern const char* const kRunsScript;

}  // namespace zs::report
