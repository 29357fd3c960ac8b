// SPDX-License-Identifier: Apache-2.0
// Writes a training's metrics as an offline run of W&B, which `wandb sync` uploads. zs sends nothing and needs no key.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "metric/writer.hpp"
#include "tracker/appended.hpp"
#include "tracker/datastore.hpp"

namespace zs::tracker {

struct WandbRun {
  std::string place;              ///< the folder of "wandb", created if missing
  std::string project, entity{};  ///< entity "": whoever syncs
  std::string name{};             ///< "": W&B's own choice
  std::vector<std::string> tags{};
  std::string id{};      ///< "": generate one
  std::string folder{};  ///< of a resumed run, whose file is rewritten with its earlier records; "": a new one
};

/// The folder is PLACE/wandb/offline-run-TIME-ID. What was written survives a kill -9; without close() W&B reports the
/// run as crashed.
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
  /// A line of the console, without its end; may be called before begin().
  void output(const std::string& line);
  /// Ends the run with this exit code. Call it after finish().
  void close(int exit_code);

 private:
  void add(WandbRecord record);

  WandbRun run_;
  double start_;
  std::unique_ptr<AppendedFile> file_;
  Datastore store_;
  std::int64_t number_ = 0;
  std::vector<Item> last_;  // by key
  std::vector<std::string> early_;
};

}  // namespace zs::tracker
