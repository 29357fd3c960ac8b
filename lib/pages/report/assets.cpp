// SPDX-License-Identifier: Apache-2.0
// The styles and scripts of pages, as bytes of the program: a copied zs-report needs no other file.
#include "report/render.hpp"

// `text` is the content of lib/pages/report/FILE behind a line break, up to a NUL.
#define ZS_PAGE(text, file)                                                                       \
  asm(".pushsection .rodata\n.globl zs_page_" #text "\n.hidden zs_page_" #text "\nzs_page_" #text \
      ": .byte 10\n.incbin \"lib/pages/report/" file "\"\n.byte 0\n.popsection");                 \
  extern "C" __attribute__((visibility("hidden"))) const char zs_page_##text[]

ZS_PAGE(style, "report.css");
ZS_PAGE(script, "report.js");
ZS_PAGE(runs_style, "runs.css");
ZS_PAGE(runs_body, "runs.html");
ZS_PAGE(runs_script, "runs.js");

namespace zs::report {

const char* const kStyle = zs_page_style;
const char* const kScript = zs_page_script;
const char* const kRunsStyle = zs_page_runs_style;
const char* const kRunsBody = zs_page_runs_body;
const char* const kRunsScript = zs_page_runs_script;

}  // namespace zs::report
