// SPDX-License-Identifier: Apache-2.0
// What the operations of a step took on a machine: measured in a training, kept in its run's folder as JSON, and what
// passes decide by and predictions are made of.
#pragma once
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace zs::plan {

/// Of one kind of operation on one unit: the mean over all of a step's, and over ranks; of the steps that were measured
/// the shortest, which other work on the machine delayed least.
struct Timing {
  Kind kind{};
  int unit = -1;
  double seconds = 0;  ///< alone: what was given to the device before it was done
  double growth = 0;   ///< bytes of device memory that it allocates, less what it frees
  bool operator==(const Timing&) const = default;
};

struct Profile {
  std::string model, device;  ///< "gpt2", "cpu"
  Shape shape;                ///< of the step that was measured
  int bytes_per_parameter = 4;
  std::string noun = "tokens";  ///< what a micro-batch has so many of: "images", where the model takes those
  std::int64_t count = 0;
  int node = 1;           ///< ranks on one node
  bool overlaps = false;  ///< what travels does so while a unit computes: on GPUs
  double rest = 0;        ///< seconds of a step beside its operations
  double peak = 0;        ///< bytes of device memory at the peak; on GPUs of a step without passes
  double state = 0;       ///< of these what the engine kept: parameters, gradients, optimizer state, their buffers
  /// Ranks of a node that compute at once, its processors over the threads of a rank: more of them share. 0: any number
  /// (each has a GPU).
  int slots = 0;
  std::string config{};  ///< the model's config.json
  std::vector<Timing> timings{};

  /// The timing of an operation on a unit, or null.
  const Timing* find(Kind kind, int unit) const;
};

/// Collects the operations of steps on one rank.
class Timings {
 public:
  /// `bytes` are allocated behind the operation.
  void add(const Op& op, double seconds, std::int64_t bytes);
  /// The step took so long in all.
  void end_step(double seconds);
  std::int64_t steps() const { return steps_; }
  /// Puts them into `profile`, of which the rest is known. REQUIRES: a step.
  Profile into(Profile profile) const;

 private:
  struct Sum {
    double seconds = 0;          ///< of the step that is measured
    std::int64_t now = 0;        ///< operations in it
    double shortest = kForever;  ///< mean of a step before
    double growth = 0;           ///< of all steps
    std::int64_t count = 0;      ///< operations in them
  };
  static constexpr double kForever = std::numeric_limits<double>::infinity();
  std::map<std::pair<Kind, int>, Sum> sums_;
  std::int64_t steps_ = 0, allocated_ = -1;
  double operations_ = 0;  ///< seconds, in the step that is measured
  double rest_ = kForever;
};

/// That of all ranks: the mean of the times, the most of the memory. REQUIRES: one or more, of one plan.
Profile joined(const std::vector<Profile>& ranks);

std::string to_json(const Profile& profile);
/// Throws zs::Error, with `name` in front, at what is no such profile.
Profile profile_from_json(const std::string& text, const std::string& name);
/// The profile of a file, or of the run in a folder (profile.json).
Profile read_profile(const std::string& path);

/// Throws zs::Error where what was measured is of other units; it names the first.
void require_same_units(const Shape& shape, const Profile& profile);

/// "gather_wait".
std::string name(Kind kind);

}  // namespace zs::plan
