// Small functions go into their callers before accesses are planned.
//
// The problem. Accesses are taken before the optimiser has done anything, so that it cannot merge
// or delete them. But before inlining almost every local object of C++ escapes: its constructor
// takes its address, and so does every operator called on it. Recording those accesses is not
// wrong, but there are several times as many of them as of the others (a butterfly of an FFT over
// std::complex made 58 instead of 10), and the functions that make them grow so much that they are
// never inlined. And what happens in a lock_guard has the line of a header of the library, where
// the line that declares the guard says more.
//
// Two kinds of calls go:
//
//   - of functions of the library. They are nobody's unit of work (function_facts.h) and get no
//     marks, so nothing that is recorded depends on their being functions.
//   - of the program's own functions, where such a call can touch nothing but locals of its caller
//     that nobody else knows: a random generator on the stack, arithmetic on small structs. A call
//     that touches nothing that could be shared is nobody's unit of work either.
//
// An access to memory that another thread could reach is not removed by this.
#pragma once

#include <functional>

#include <llvm/IR/Module.h>

namespace heddle::instrument {

// `clean_up` brings a function into the form in which its accesses are planned (locals in
// registers); it is called for every wanted function of the module, after its callees, perhaps more
// than once.
void inline_small(llvm::Module& module, const std::function<bool(llvm::Function&)>& wanted,
                  const std::function<void(llvm::Function&)>& clean_up);

}  // namespace heddle::instrument
