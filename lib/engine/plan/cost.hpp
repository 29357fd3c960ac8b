// SPDX-License-Identifier: Apache-2.0
// The predicted cost of a plan's step, from measurements of another plan: its time, memory of a rank, bytes sent.
//
//   forward, recompute, backward   as measured of the unit
//   step, accumulate               by the elements that a rank updates or adds
//   collectives                    by the bytes that a rank sends: latency + bytes / bandwidth
//   load, store                    by the bytes of the unit's state
//
// "By" means a line fitted through the measured units. If collectives overlap computation (on a GPU), communication and
// computation are two lanes, joined by waits. Ranks that share processors share their time.
#pragma once
#include <map>
#include <set>

#include "plan/profile.hpp"

namespace zs::plan {

/// Seconds per operation, and per byte or element.
struct Line {
  double start = 0, each = 0;
  double at(double amount) const { return start + each * amount; }
};
/// Least squares, with both parts at least 0; for a single amount the constant is 0. REQUIRES: a point.
Line fit(const std::vector<std::pair<double, double>>& points);

/// The network between the nodes of the planned training; nodes have `node` consecutive ranks.
struct Network {
  int node = 0;          ///< 0: as in the profile
  double bandwidth = 0;  ///< bytes per second that a rank sends to other nodes; 0: as within a node
  double latency = 0;    ///< additional seconds of a collective between nodes
};

struct Prediction {
  double seconds = 0;
  std::map<std::string, double> parts{};  ///< seconds by lane: "forward", "communication" (hidden or not), ...
  double memory = 0;                      ///< bytes of a rank at the peak
  double sent = 0, between_nodes = 0;     ///< bytes of a rank
  std::set<std::string> unknown{};        ///< operations without measurements, which the time excludes
};

class CostModel {
 public:
  CostModel(const Profile& profile, const Network& network);
  /// For a plan over the profile's units, in its number format, with its micro-batches.
  Prediction predict(const Plan& plan) const;
  const Profile& profile() const { return profile_; }
  /// The time of an operation by its amount, if it was measured:
  /// for a gather the bytes that a rank sends; else null.
  const Line* line(Kind kind) const;

 private:
  Profile profile_;
  Network network_;
  std::map<Kind, Line> lines_;

  double seconds(const Op& op, const Shape& shape, std::set<std::string>& unknown) const;
  double of_input(const Op& op, std::set<std::string>& unknown) const;
  /// The slow-down if more ranks share a node's processors than in the measurement.
  double crowding(const Shape& shape) const;
  double memory(const Plan& plan) const;
};

}  // namespace zs::plan
