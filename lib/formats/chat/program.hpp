// SPDX-License-Identifier: Apache-2.0
// The program that renders chat templates: Python with Jinja2, the library that transformers renders them with.
#pragma once

namespace zs::chat {

/// Reads from stdin a line of JSON with the template, the special tokens and what the loss is of, then one for each
/// conversation; prints a line for each. Status 3: there is no jinja2.
extern const char* const kProgram;

}  // namespace zs::chat
