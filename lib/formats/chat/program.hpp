// SPDX-License-Identifier: Apache-2.0
// The Python program that renders chat templates with Jinja2, the library that transformers uses for them.
#pragma once

namespace zs::chat {

/// Reads from stdin a line of JSON with the template, the special tokens and the loss mode, then one line per
/// conversation; prints one line for each. Exits with 3 if jinja2 is missing.
extern const char* const kProgram;

}  // namespace zs::chat
