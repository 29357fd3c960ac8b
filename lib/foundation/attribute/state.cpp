// SPDX-License-Identifier: Apache-2.0
#include "attribute/state.hpp"

#include <csignal>

#include "base/number.hpp"

namespace zs::attribute {

std::string code_text(std::string_view exit_code) {
  const std::int64_t code = parse_int(exit_code).value_or(0), signal = code < 0 ? -code : code - 128;
  if (code == 0 || signal <= 0 || signal >= NSIG) return code == 0 ? "" : "exit code " + to_text(code);
  const char* const name = ::sigabbrev_np(static_cast<int>(signal));
  return "ended by " + (name ? std::string("SIG") + name : "signal " + to_text(signal));
}

std::string reason(const Fact& fact) {
  if (const std::string failure = fact("failure"); !failure.empty()) return failure;
  const std::string error = fact("error"), rank = fact("error_rank");
  if (error.empty()) return code_text(fact("exit_code"));
  return (rank.empty() || error.starts_with("rank ") ? "" : "rank " + rank + ": ") + error;
}

}  // namespace zs::attribute
