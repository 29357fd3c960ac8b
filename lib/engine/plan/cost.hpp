// SPDX-License-Identifier: Apache-2.0
// What a step of a plan costs, from what was measured of another: its time, the memory of a rank, the bytes it sends.
//
//   forward, recompute, backward   as measured of the unit
//   step, accumulate               by the elements that a rank updates or adds
//   collectives                    by the bytes that a rank sends: latency + bytes / bandwidth
//   load, store                    by the bytes of the unit's state
//
// "By" means a line through the units that were measured.
// Where collectives overlap (a GPU's), what travels and what computes are two lanes, and a wait joins them. Ranks that
// share processors share their time.
#pragma once
#include <map>
#include <set>

#include "plan/profile.hpp"

namespace zs::plan {

/// Seconds that begin anew each time, and for each byte or element.
struct Line {
  double start = 0, each = 0;
  double at(double amount) const { return start + each * amount; }
};
/// Least squares, neither part less than 0; of one amount alone the start is 0. REQUIRES: a point.
Line fit(const std::vector<std::pair<double, double>>& points);

/// Between nodes, where the training is to run; nodes have `node` ranks in order.
struct Network {
  int node = 0;          ///< 0: as in the profile
  double bandwidth = 0;  ///< bytes that a rank sends to other nodes in a second; 0: as within a node
  double latency = 0;    ///< seconds more of a collective that leaves a node
};

struct Prediction {
  double seconds = 0;
  std::map<std::string, double> parts{};  ///< seconds by lane: "forward", "communication" (hidden or not), ...
  double memory = 0;                      ///< bytes of a rank at the peak
  double sent = 0, between_nodes = 0;     ///< bytes of a rank
  std::set<std::string> unknown{};        ///< what the profile does not know and the time leaves out
};

class CostModel {
 public:
  CostModel(const Profile& profile, const Network& network);
  /// Of a plan over the profile's units, in its number format, with its micro-batches.
  Prediction predict(const Plan& plan) const;
  const Profile& profile() const { return profile_; }
  /// What an operation takes by its amount, where that was measured: of a gather the bytes that a rank sends; else
  /// null.
  const Line* line(Kind kind) const;

 private:
  Profile profile_;
  Network network_;
  std::map<Kind, Line> lines_;

  double seconds(const Op& op, const Shape& shape, std::set<std::string>& unknown) const;
  double of_input(const Op& op, std::set<std::string>& unknown) const;
  /// How much longer everything takes where more ranks share a node's processors than when it was measured.
  double crowding(const Shape& shape) const;
  double memory(const Plan& plan) const;
};

}  // namespace zs::plan
