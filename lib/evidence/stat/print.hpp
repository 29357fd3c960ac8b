// SPDX-License-Identifier: Apache-2.0
// A summary as text: for people, for awk, for jq.
#pragma once
#include <string>

#include "base/sheet.hpp"
#include "metric/table.hpp"

namespace zs::stat {

/// Header and rows with units and few digits. Columns without values are left out.
Sheet for_people(const metric::Table& summary);

/// The rows of a divergence() table for the first condition, in the same form.
Sheet divergence_for_people(const metric::Table& divergence);

/// The whole table: every column, shortest round-trip numbers, absent cells empty.
Sheet sheet_of(const metric::Table& table);

/// One object: {"attributes": {...}, "conditions": [{COLUMN: VALUE, ...}, ...], "tables": {NAME: [...]}}. Absent cells
/// are left out; nan and inf are the strings "nan", "inf", "-inf". REQUIRES: store.summary.
std::string to_json(const metric::Store& store);

}  // namespace zs::stat
