// SPDX-License-Identifier: Apache-2.0
// A training's metrics as an offline run of W&B, which `wandb sync` sends. zs itself sends nothing, and needs no key.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "metric/writer.hpp"
#include "tracker/appended.hpp"
#include "tracker/datastore.hpp"

namespace zs::tracker {

struct WandbRun {
  std::string place;              ///< folder in which "wandb" lies, or is made
  std::string project, entity{};  ///< entity "": who syncs
  std::string name{};             ///< "": W&B's own choice
  std::vector<std::string> tags{};
  std::string id{};      ///< "": a new one
  std::string folder{};  ///< of a run that goes on; it is written anew, with what was known; "": a new one
};

/// The folder is PLACE/wandb/offline-run-TIME-ID. What was written is there after a kill -9; without close() W&B calls
/// the run crashed.
class WandbWriter : public metric::Writer {
 public:
  /// Chooses id and folder; writes nothing.
  explicit WandbWriter(WandbRun run);

  const std::string& id() const { return run_.id; }
  const std::string& folder() const { return run_.folder; }

  void begin(const std::string& run, const Facts& attributes) override;
  void row(const std::vector<metric::ColumnInfo>& columns, const std::vector<std::string_view>& cells) override;
  void flush(bool now) override;
  void finish(const Facts& attributes) override;
  /// A line of the console, without its end; also before begin().
  void output(const std::string& line);
  /// The run ends, with this exit code. After finish().
  void close(int exit_code);

 private:
  void add(WandbRecord record);

  WandbRun run_;
  double start_;
  std::unique_ptr<AppendedFile> file_;
  Datastore store_;
  std::int64_t number_ = 0;
  std::vector<Item> last_;  // of each key
  std::vector<std::string> early_;
};

}  // namespace zs::tracker
