// SPDX-License-Identifier: Apache-2.0
// The file of a W&B run, run-ID.wandb: Protocol Buffers records in the blocks of LevelDB's log format, with W&B's
// header and a plain CRC-32.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace zs::tracker {

/// Encodes the header and the records after it.
class Datastore {
 public:
  /// The first seven bytes of the file.
  static std::string header();
  /// The bytes of the next record in the file.
  std::string add(std::string_view record);

 private:
  std::size_t at_ = 7;  // offset in the block
};

/// Passes each complete record of a file to `use`, with its number from 1; damage is a fault, and reading continues at
/// the next block. Throws Error if `bytes` are no such file.
void read_datastore(std::string_view bytes, const std::string& name,
                    const std::function<void(std::string_view, std::int64_t)>& use, const FaultSink& faults);

/// A key and its value as JSON.
struct Item {
  std::string key, json;
};

/// The fields of a record that zs reads and writes.
struct WandbRecord {
  enum class Kind { other, run, config, history, summary, exit, output, header, final, footer } kind = Kind::other;
  std::int64_t number = 0;
  std::vector<Item> items{};  ///< of a configuration (also in a run), a row of the history, or the summary
  std::string id{}, entity{}, project{}, name{}, group{}, job_type{}, host{}, notes{}, commit{};  ///< of a run
  std::vector<std::string> tags{};
  double start_time = 0;  ///< s since 1970
  std::int64_t step = 0;  ///< W&B's own step, of a row
  int exit_code = 0;
  std::int64_t runtime = 0;  ///< s
  std::string line{};        ///< of the console
};

std::string to_bytes(const WandbRecord& record);
/// Throws protozero::exception if the bytes are no record.
WandbRecord wandb_record(std::string_view bytes);

}  // namespace zs::tracker
