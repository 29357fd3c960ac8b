// SPDX-License-Identifier: Apache-2.0
// Checks of one recording: relations that hold within every sound training, so that no second one is needed. The table
// in checks.cpp has a row for each.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "probe/answer.hpp"
#include "probefile/run.hpp"

namespace zs::probe {

/// A step, and the state before it.
struct Moment {
  std::int64_t number;
  const Step& step;
  const Step* before;   ///< the step before it, if it is recorded whole
  const Tensors* from;  ///< parameters and state before it: what that step left, or those of a start; or null
};

/// A relation that does not hold at a place.
struct Breach {
  std::int64_t step = 0;
  std::string place, relation;     ///< "grad/w"; a clause: "rank 1 holds other values than rank 0"
  double distance = 0, bound = 0;  ///< from what is expected, relative; 0 where only equality holds
};

/// The findings of a check so far.
class Tally {
 public:
  void holds(std::int64_t places = 1) { held_ += places; }
  void breach(Breach found);
  /// Notes something that could not be checked, and what to record for it; each text once.
  void lacks(const std::string& what) { lacks_.insert(what); }
  void note(const std::string& what) { notes_.insert(what); }

  std::int64_t held() const { return held_; }
  std::int64_t broken() const { return broken_; }
  const std::vector<Breach>& breaches() const { return breaches_; }
  const std::set<std::string>& missing() const { return lacks_; }
  const std::set<std::string>& notes() const { return notes_; }

 private:
  std::int64_t held_ = 0, broken_ = 0;
  std::vector<Breach> breaches_;  // the first ones
  std::set<std::string> lacks_, notes_;
};

/// Judges one relation step by step.
class Judge {
 public:
  Judge(const Run& run, Tally& tally) : run_(run), tally_(tally) {}
  virtual ~Judge() = default;
  virtual void start(std::int64_t, const Tensors&) {}
  virtual void step(const Moment&) {}
  /// Called after the last recorded step.
  virtual void end() {}

 protected:
  const Run& run_;
  Tally& tally_;
};

/// A row of the table.
struct Check {
  const char* name;    ///< "replicas"
  const char* shows;   ///< what holds, as a clause
  const char* record;  ///< what a recording must have, so that it is checked; "": some trainings have no such thing
  std::unique_ptr<Judge> (*judge)(const Run&, Tally&);
};
const std::vector<Check>& checks();

/// Checks a recording. `grow` continues with the steps that were added.
class Checking {
 public:
  explicit Checking(const Run& run);
  void grow();
  /// The answer about the steps so far. `ended`: nothing is added any more.
  Answer answer(bool ended);
  std::int64_t steps() const { return steps_; }
  bool apart() const;

 private:
  const Run& run_;
  std::map<std::string, Tally> tallies_;
  std::vector<std::pair<const Check*, std::unique_ptr<Judge>>> judges_;
  std::int64_t last_ = -1, steps_ = 0;
  std::set<std::int64_t> started_;
};

/// The headline of the first relation that does not hold in a recording, or "".
std::string headline_of(const Run& run);

/// Throws Error if the recording is damaged.
Answer check(const std::string& folder);

/// The same while it is still being written.
class LiveChecks {
 public:
  explicit LiveChecks(const std::string& folder) : growing_(folder) {}
  Live::Seen grow();
  Answer answer();

 private:
  probefile::Growing growing_;
  std::unique_ptr<Checking> checking_;
  bool ended_ = false;
};

}  // namespace zs::probe
