// SPDX-License-Identifier: Apache-2.0
// Why a training ended badly: one sentence from what was recorded, for tables, reports and zs-runs alike.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace zs::attribute {

/// The value of a fact by its name; "" if it is not known.
using Fact = std::function<std::string(const char* name)>;

/// The first cause that is known: `failure`, else `error` with its rank ("rank 3: ValueError: bad batch"), else how its
/// process ended; "" if nothing says that it ended badly.
std::string reason(const Fact& fact);

/// "exit code 3"; of a signal "ended by SIGKILL": 137 in a shell, -9 in Python; "" for 0 and what is no number.
std::string code_text(std::string_view exit_code);

}  // namespace zs::attribute
