// SPDX-License-Identifier: Apache-2.0
// Measured times of the operations of a step: recorded in a training, stored in its run's folder as JSON, and used by
// passes and predictions.
#pragma once
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace zs::plan {

/// The timing of one kind of operation on one unit: the mean over all of a step and over ranks; from the shortest
/// measured step, which other work on the machine delayed least.
struct Timing {
  Kind kind{};
  int unit = -1;
  double seconds = 0;  ///< measured alone: after all earlier work was complete
  double growth = 0;   ///< bytes of device memory that it allocates, minus what it frees
  bool operator==(const Timing&) const = default;
};

struct Profile {
  std::string model, device;  ///< "gpt2", "cpu"
  Shape shape;                ///< of the measured step
  int bytes_per_parameter = 4;
  std::string noun = "tokens";  ///< the unit of a micro-batch: "images" if the model takes images
  std::int64_t count = 0;
  int node = 1;           ///< ranks on one node
  bool overlaps = false;  ///< communication overlaps computation: on GPUs
  double rest = 0;        ///< seconds of a step outside its operations
  double peak = 0;        ///< bytes of device memory at the peak; on GPUs for a step without passes
  double state = 0;       ///< the engine's part of these: parameters, gradients, optimizer state, their buffers
  /// Ranks of a node that can compute at once: its processors over the threads of a rank; more ranks share them. 0: any
  /// number (each has a GPU).
  int slots = 0;
  std::string config{};  ///< the model's config.json
  std::vector<Timing> timings{};

  /// The timing of an operation on a unit, or null.
  const Timing* find(Kind kind, int unit) const;
  /// Bytes that the operation leaves allocated, at least 0. A forward that was not measured takes the value of a
  /// similar one.
  double left_by(Kind kind, int unit) const;
};

/// Collects the operations of steps on one rank.
class Timings {
 public:
  /// `bytes` are allocated after the operation.
  void add(const Op& op, double seconds, std::int64_t bytes);
  /// The total time of the step.
  void end_step(double seconds);
  std::int64_t steps() const { return steps_; }
  /// Adds them to `profile`, which has the rest. REQUIRES: a step.
  Profile into(Profile profile) const;

 private:
  struct Sum {
    double seconds = 0;          ///< of the current step
    std::int64_t now = 0;        ///< operations in it
    double shortest = kForever;  ///< mean of an earlier step
    double growth = 0;           ///< of all steps
    std::int64_t count = 0;      ///< operations in them
  };
  static constexpr double kForever = std::numeric_limits<double>::infinity();
  std::map<std::pair<Kind, int>, Sum> sums_;
  std::int64_t steps_ = 0, allocated_ = -1;
  double operations_ = 0;  ///< seconds, in the current step
  double rest_ = kForever;
};

/// The profile of all ranks: the mean of the times, the maximum of the memory. REQUIRES: one or more, of one plan.
Profile profile_of(const std::vector<Profile>& ranks);

std::string to_json(const Profile& profile);
/// Throws zs::Error, which begins with `name`, if it is no such profile.
Profile profile_from_json(const std::string& text, const std::string& name);
/// The profile of a file, or of the run in a folder (profile.json).
Profile read_profile(const std::string& path);

/// Throws zs::Error with the first difference if the profile is of other units.
void require_same_units(const Shape& shape, const Profile& profile);

/// "gather_wait".
std::string name(Kind kind);

}  // namespace zs::plan
