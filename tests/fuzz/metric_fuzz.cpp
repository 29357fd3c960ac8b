// SPDX-License-Identifier: Apache-2.0
// libFuzzer target for lib/formats/metric, run by tests/fuzz/run metric. The input is a metric file: text, HDF5 images,
// or several of them one after another. What is read is written in both forms, and must read back as the same content.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "fuzz/input.hpp"
#include "metric/file.hpp"
#include "metric/hdf5.hpp"

namespace metric = zs::metric;

// The HDF5 library forgets some memory on its own error paths.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // A guarded image is read in a child process, whose crash is an error by design and would only be slow here.
  const std::size_t image = bytes.find("\x89HDF");
  if (image != std::string_view::npos && metric::needs_guard(bytes.substr(image))) return 0;
  metric::Store store;
  try {
    store = metric::parse(bytes, "input");
  } catch (const zs::Error&) {
    return 0;
  }
  metric::Store runs;
  runs.runs = store.runs;
  const std::string form = metric::to_h5(runs), text = metric::to_tsv(runs.runs);
  zs::fuzz::require(metric::to_h5(metric::parse(form, "image")) == form);
  zs::fuzz::require(metric::to_h5(metric::parse(text, "text")) == form);
  metric::to_jsonl(runs.runs);
  return 0;
}
