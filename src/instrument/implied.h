// Segments that need no record of their own (abi/abi.h, "implied segments").
//
// The head of a loop touches no memory; the flow level wants to know that it was executed, because
// its branch controls the body and its phis choose values. But whoever comes after it can tell: if
// all its successors have no other predecessor and record something when they begin, their records
// mean that the head was executed before. The same goes for every test between two tests.
//
// Nothing changes in the order of what is recorded: between a block that touches nothing and the
// first record of the next block no other thread can run but where it could right before that
// record, and a record that is interrupted has its header already.
#pragma once

#include "instrument/plan.h"
#include "instrument/unit.h"

namespace heddle::instrument {

// Takes the steps of implied segments out of the plan and lets the slots of their successors say
// so.
void leave_out_implied(FunctionPlan& plan, Unit& unit);

}  // namespace heddle::instrument
