// Gather and release: what happens to a unit's parameters. When it happens is schedule.h's affair.
#pragma once

#include "dist/unit.h"

namespace sherd {

/// Gives the unit's sharded parameters their bytes (category `gathered`) and starts an all-gather
/// over `comm` into them; returns at once. (comm.size()-1)/comm.size() of their bytes are received.
void gather_start(Unit& unit, Communicator& comm, Traffic traffic);
/// The same from what forward left in a group of fewer ranks.
void gather_group_start(Unit& unit, Communicator& group);
/// Blocks until the parameters are whole.
void gather_wait(Unit& unit);
/// Gives the bytes back.
void release(Unit& unit);
/// Keeps this rank's part of a group of ranks, then gives the rest back.
void release_to_group(Unit& unit, Communicator& group);
/// Drops that part.
void forget_group(Unit& unit);

}  // namespace sherd
