// SPDX-License-Identifier: Apache-2.0
// The words of "status" in a run's record, written by the run or by who recorded it. For its actual state see
// attribute::RunState, which experiment/state.cpp derives from the status, the lease, the steps and Slurm.
#pragma once

namespace zs::registry::status {

inline constexpr char planned[] = "planned";      ///< registered for a job that will train it
inline constexpr char running[] = "running";      ///< training, or its process ended without recording it
inline constexpr char recorded[] = "recorded";    ///< known only by fields
inline constexpr char complete[] = "complete";    ///< ended after all its steps
inline constexpr char preempted[] = "preempted";  ///< stopped with everything saved
inline constexpr char cancelled[] = "cancelled";  ///< its user cancelled its job
inline constexpr char diverged[] = "diverged";    ///< ended with a loss that is not finite
inline constexpr char failed[] = "failed";        ///< ended with an error

}  // namespace zs::registry::status
