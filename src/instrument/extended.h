// Records that go on where another one ended.
//
// The problem. Code with branches has short blocks, and each of them writes a record: a header that
// has to be stored, sent and looked up, for one or two accesses. But where a block is always
// entered from blocks that have just ended a record, it can take that record over: it replaces the
// header by that of a joined record (abi/abi.h) and writes its words behind those that are there.
// Whoever reads the records sees one, whose parts are the segments in their order.
//
// Which blocks. All that is recorded on the way into the block must be known: every block before it
// ends with a segment, or records nothing and has one block before it of which the same holds.
// These segments have as many words, so that the block knows where the record begins; which one it
// was, and so which header to write, it knows by the way it was entered. No way may lead back, so
// that no record goes on for ever.
//
// Room. Nothing may be handed over in the middle of a record. So the segment that opens it makes
// sure that there is room for all that may follow (Step::reserve).
#pragma once

#include "instrument/loops.h"
#include "instrument/plan.h"
#include "instrument/unit.h"

#include <vector>

namespace heddle::instrument {

// The last step before emission: the blocks of the function are those that will be emitted. Loops
// that have copies are told how much less they write.
void extend_records(FunctionPlan& plan, std::vector<CopiedLoop>& loops, Unit& unit);

}  // namespace heddle::instrument
