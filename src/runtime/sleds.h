// Sleds (abi/abi.h): the places in instrumented code that a run may turn into jumps; and the stores
// of words, which it may drop.
//
// The problem. A scheduling point may stand before every access, and the flow level wants a word
// from nearly every basic block; yet most runs want neither, and a test per place, with the code
// that it jumps to, was more than half of all instrumented code. So the compiler leaves a
// no-operation of five bytes and says in a table where it is. While a module loads, before any of
// its code but constructors of priority 0 has run, the runtime writes a detour for every place that
// the run wants and puts a jump to the detour in the sled's place:
//
//   point   leaq address, %r11;  call *__heddle_point_inline;  jmp (go on);  .long flag - .
//   flow    the segment's one word, written in line; a full block goes to __heddle_flow_inline
//
// Detours lie in a mapping of their own near the module, written first and made executable then.
// The module's code is writable only while its sleds are changed. Where the system refuses that,
// the run goes on without what was wanted and says so. The detours outlive the module, because
// threads may run in it until the process is gone; a module that is loaded again in the same place
// takes them over.
#pragma once

#include "abi/abi.h"

namespace heddle::rt {

// A scheduling point before every plain access of the unit's module.
void sleds_place_all_points(const heddle_unit* unit);

// The same before the accesses of the unit whose flags are set.
void sleds_place_flagged_points(const heddle_unit* unit);

// The segments of the flow level, in all of the unit's module.
void sleds_place_flows(const heddle_unit* unit);

// Nobody wants the words of the unit's module: their stores become no-operations. They cost more
// than all else that a record consists of: a processor finishes one store per cycle.
void sleds_drop_words(const heddle_unit* unit);

}  // namespace heddle::rt
