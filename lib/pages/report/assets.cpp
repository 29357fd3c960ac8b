// SPDX-License-Identifier: Apache-2.0
// The styles and scripts of pages.
#include "base/embedded.hpp"
#include "report/render.hpp"

ZS_EMBEDDED(zs_page_style, "lib/pages/report/report.css");
ZS_EMBEDDED(zs_page_script, "lib/pages/report/report.js");
ZS_EMBEDDED(zs_page_runs_style, "lib/pages/report/runs.css");
ZS_EMBEDDED(zs_page_runs_body, "lib/pages/report/runs.html");
ZS_EMBEDDED(zs_page_runs_script, "lib/pages/report/runs.js");

namespace zs::report {

const char* const kStyle = zs_page_style;
const char* const kScript = zs_page_script;
const char* const kRunsStyle = zs_page_runs_style;
const char* const kRunsBody = zs_page_runs_body;
const char* const kRunsScript = zs_page_runs_script;

}  // namespace zs::report
