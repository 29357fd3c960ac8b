// SPDX-License-Identifier: Apache-2.0
// libFuzzer target for lib/formats/tracker, run by tests/fuzz/run tracker. The input is the file of a W&B run or an
// event file of TensorBoard, told apart by its first byte. What is read is written again, and must read back as the
// same.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "fuzz/input.hpp"
#include "protozero/exception.hpp"
#include "tracker/datastore.hpp"
#include "tracker/tfevents.hpp"

namespace tracker = zs::tracker;

namespace {

const zs::FaultSink kFaults = [](const zs::Fault&) {};

void datastore(std::string_view bytes) {
  std::string again = tracker::Datastore::header();
  tracker::Datastore store;
  std::int64_t records = 0, read = 0;
  tracker::read_datastore(
      bytes, "input",
      [&](std::string_view record, std::int64_t) {
        again += store.add(record), ++records;
        try {
          const tracker::WandbRecord one = tracker::wandb_record(record);
          const std::string form = tracker::to_bytes(one);
          zs::fuzz::require(tracker::to_bytes(tracker::wandb_record(form)) == form);
        } catch (const protozero::exception&) {  // no record
        }
      },
      kFaults);
  tracker::read_datastore(
      again, "again", [&](std::string_view, std::int64_t) { ++read; },
      [](const zs::Fault&) { zs::fuzz::require(false); });
  zs::fuzz::require(read == records);
}

void events(std::string_view bytes) {
  std::string again;
  std::int64_t count = 0, read = 0;
  tracker::read_events(
      bytes, "input", [&](const tracker::Event& event, std::int64_t) { again += tracker::to_frame(event), ++count; },
      kFaults);
  tracker::read_events(
      again, "again", [&](const tracker::Event&, std::int64_t) { ++read; },
      [](const zs::Fault&) { zs::fuzz::require(false); });
  zs::fuzz::require(read == count);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    bytes.starts_with(':') ? datastore(bytes) : events(bytes);
  } catch (const zs::Error&) {
  }
  return 0;
}
