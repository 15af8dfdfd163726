#include "instrument/address.h"

#include <algorithm>

#include <llvm/ADT/MapVector.h>
#include <llvm/IR/Operator.h>

namespace heddle::instrument {
namespace {

using llvm::dyn_cast;
using llvm::isa;

constexpr unsigned kDepth = 8;

std::uint64_t as_word(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

bool is_arithmetic(const llvm::Instruction& instruction) {
  return isa<llvm::CastInst>(instruction) || isa<llvm::GetElementPtrInst>(instruction) ||
         (isa<llvm::BinaryOperator>(instruction) && instruction.getType()->isIntegerTy());
}

// value = rest + constant, where the sum does not overflow when `exact`.
bool split_sum(const llvm::Value*& value, std::int64_t& constant, bool exact) {
  const auto* sum = dyn_cast<llvm::BinaryOperator>(value);
  if (sum == nullptr ||
      (sum->getOpcode() != llvm::Instruction::Add && sum->getOpcode() != llvm::Instruction::Sub)) {
    return false;
  }
  const auto* right = dyn_cast<llvm::ConstantInt>(sum->getOperand(1));
  if (right == nullptr || right->getBitWidth() > 64) return false;
  if (exact && !sum->hasNoSignedWrap()) return false;
  const std::int64_t step = right->getSExtValue();
  constant = sum->getOpcode() == llvm::Instruction::Add ? step : -step;
  value = sum->getOperand(0);
  return true;
}

}  // namespace

const llvm::Value* Addresses::representative(const llvm::Value* value, unsigned depth) {
  const auto* instruction = dyn_cast<llvm::Instruction>(value);
  if (instruction == nullptr || depth > kDepth || !is_arithmetic(*instruction)) return value;
  if (const auto known = representatives_.find(value); known != representatives_.end()) {
    return known->second;
  }
  std::vector<std::uint64_t> key{instruction->getOpcode(), as_word(instruction->getType())};
  if (const auto* gep = dyn_cast<llvm::GetElementPtrInst>(instruction)) {
    key.push_back(as_word(gep->getSourceElementType()));
  }
  for (const llvm::Value* operand : instruction->operands()) {
    key.push_back(as_word(representative(operand, depth + 1)));
  }
  const llvm::Value* chosen = by_expression_.try_emplace(std::move(key), value).first->second;
  representatives_[value] = chosen;
  return chosen;
}

LinearAddress Addresses::linear(const llvm::Value* address) {
  LinearAddress out;
  const unsigned width = layout_.getIndexSizeInBits(0);
  llvm::MapVector<llvm::Value*, llvm::APInt> variable;
  llvm::APInt constant(width, 0);
  const llvm::Value* base = address;
  while (const auto* gep = dyn_cast<llvm::GEPOperator>(base)) {
    if (!gep->collectOffset(layout_, width, variable, constant)) break;
    base = gep->getPointerOperand();
  }
  out.constant = constant.getSExtValue();
  out.base = representative(base, 0);
  struct Term {
    std::uint64_t value, extension, coefficient;
    bool operator<(const Term& other) const {
      return std::pair(value, extension) < std::pair(other.value, other.extension);
    }
  };
  std::vector<Term> terms;
  for (const auto& [index, scale] : variable) {
    const std::int64_t coefficient = scale.getSExtValue();
    const llvm::Value* value = index;
    std::uint64_t extension = 0;
    if (const auto* wider = dyn_cast<llvm::SExtInst>(value)) {
      extension = llvm::Instruction::SExt;
      value = wider->getOperand(0);
    }
    // An index of the array's own width may wrap: so does the address.
    std::int64_t step = 0;
    while (
        split_sum(value, step, extension != 0 || value->getType()->getIntegerBitWidth() < width)) {
      out.constant += step * coefficient;
    }
    terms.push_back(
        {as_word(representative(value, 0)), extension, static_cast<std::uint64_t>(coefficient)});
  }
  std::sort(terms.begin(), terms.end());
  out.key.push_back(as_word(out.base));
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (i + 1 < terms.size() && !(terms[i] < terms[i + 1])) {
      terms[i + 1].coefficient += terms[i].coefficient;
      continue;
    }
    if (terms[i].coefficient == 0) continue;
    out.key.insert(out.key.end(), {terms[i].value, terms[i].extension, terms[i].coefficient});
  }
  out.plain = out.key.size() == 1;
  return out;
}

}  // namespace heddle::instrument
