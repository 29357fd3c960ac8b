// SPDX-License-Identifier: Apache-2.0
// The words of "status" in a run's record: what the run, or who recorded it, wrote of itself. What has become of it is
// attribute::RunState, which experiment/state.cpp concludes from the status, the lease, the steps and Slurm.
#pragma once

namespace zs::registry::status {

inline constexpr char planned[] = "planned";      ///< registered for a job that will train it
inline constexpr char running[] = "running";      ///< it trains, or its process went without a word
inline constexpr char recorded[] = "recorded";    ///< known by fields alone
inline constexpr char complete[] = "complete";    ///< it ended after all its steps
inline constexpr char preempted[] = "preempted";  ///< it stopped with everything saved
inline constexpr char cancelled[] = "cancelled";  ///< its user has cancelled its job
inline constexpr char diverged[] = "diverged";    ///< it ended with a loss that is not finite
inline constexpr char failed[] = "failed";        ///< it ended with an error

}  // namespace zs::registry::status
