#include "detect/witness.h"

#include <utility>

namespace heddle {

void Narrator::on(const Event& event) {
  switch (event.kind) {
    case EventKind::kEnter:
    case EventKind::kLeave:
      stacks_.on(event);
      break;
    case EventKind::kAcquire:
      describe_.on(event);  // what the program calls it
      locks_.on(event);
      break;
    case EventKind::kRelease:
      locks_.on(event);
      break;
    case EventKind::kWait:
    case EventKind::kAlloc:
    case EventKind::kFree:
      describe_.on(event);
      break;
    default:
      break;
  }
}

Witness Narrator::witness(const Event& event, EventOrdinal ordinal) const {
  Witness out;
  out.thread = event.thread;
  out.kind = event.kind;
  out.order = event.order;
  out.site = event.site;
  out.stack = stacks_.current(event.thread);
  out.locks = locks_.current(event.thread);
  out.size = event.size;
  out.has_value = event.has_value != 0;
  out.ordinal = ordinal;
  out.address = event.address;
  out.value = event.value;
  return out;
}

Step Narrator::step(const Witness& witness, std::string role) const {
  Step out;
  out.role = std::move(role);
  out.thread = witness.thread;
  out.thread_name = describe_.thread(witness.thread);
  out.kind = witness.kind;
  out.order = witness.order;
  out.size = witness.size;
  out.place = describe_.place(witness.site);
  out.stack = describe_.stack(stacks_, witness.stack, witness.site);
  out.locks = locks(witness.locks);
  if (witness.has_value) out.value = witness.value;
  out.variable = variable(witness);
  out.ordinal = witness.ordinal;
  return out;
}

VariableName Narrator::variable(const Witness& witness) const {
  return describe_.variable(witness.site, witness.address, witness.size);
}

std::vector<HeldLock> Narrator::locks(LockSetId set) const {
  std::vector<HeldLock> out;
  for (const HeldLockRef& held : locks_.locks(set)) {
    out.push_back({describe_.object(held.lock), held.mode, describe_.place(held.acquired)});
  }
  return out;
}

}  // namespace heddle
