// SPDX-License-Identifier: Apache-2.0
// The styles and scripts of pages.
#include "base/embedded.hpp"
#include "report/render.hpp"

namespace zs::report {

ZS_EMBEDDED(kStyle, "lib/pages/report/report.css");
ZS_EMBEDDED(kScript, "lib/pages/report/report.js");
ZS_EMBEDDED(kRunsStyle, "lib/pages/report/runs.css");
ZS_EMBEDDED(kRunsBody, "lib/pages/report/runs.html");
ZS_EMBEDDED(kRunsScript, "lib/pages/report/runs.js");

}  // namespace zs::report
