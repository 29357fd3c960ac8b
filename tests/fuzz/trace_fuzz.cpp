// SPDX-License-Identifier: Apache-2.0
// libFuzzer target for lib/formats/trace, run by tests/fuzz/run trace. The input is a profiler trace; every analysis
// looks at what is read of it, and the parts of a critical path must join without gaps.
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "fuzz/input.hpp"
#include "trace/analysis.hpp"
#include "trace/critical_path.hpp"
#include "trace/trace.hpp"

namespace trace = zs::trace;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const zs::fuzz::MemoryFile file(std::string_view(reinterpret_cast<const char*>(data), size));
  try {
    const auto traces = trace::read_all({file.path(), file.path()}, {}, [](const zs::Fault&) {});
    const trace::Question question(traces);
    for (const trace::Analysis& analysis : trace::analyses()) {
      for (const auto& row : analysis.run(question, 10).rows) zs::fuzz::require(!row.empty());
    }
    trace::difference(traces, traces, {});
    const auto& path_back = question.paths().front();
    for (std::size_t i = 1; i < path_back.size(); ++i)
      zs::fuzz::require(path_back[i].end == path_back[i - 1].begin && path_back[i].begin < path_back[i].end);
  } catch (const zs::Error&) {
  }
  return 0;
}
