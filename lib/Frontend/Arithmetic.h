//===- Arithmetic.h - 64-bit arithmetic that reports what does not fit -----===//

#ifndef DUALPIPE_LIB_FRONTEND_ARITHMETIC_H
#define DUALPIPE_LIB_FRONTEND_ARITHMETIC_H

#include "AST.h"

#include <cstdint>
#include <limits>

namespace dualpipe::frontend {

enum class ArithmeticFault : uint8_t { None, Overflow, DivisionByZero, NotExact };

/// Floors towards minus infinity; `modulo` has the sign of the divisor, so that
/// `a == (a div b) * b + a mod b`. The divisor is neither 0 nor an overflowing -1.
inline int64_t floorDivide(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
inline int64_t floorModulo(int64_t a, int64_t b) {
  int64_t rest = a % b;
  return rest != 0 && (a < 0) != (b < 0) ? rest + b : rest;
}

/// Computes `a op b` for an arithmetic operator.
inline ArithmeticFault compute(BinaryOp op, int64_t a, int64_t b, int64_t &result) {
  using Fault = ArithmeticFault;
  switch (op) {
  case BinaryOp::Add:
    return __builtin_add_overflow(a, b, &result) ? Fault::Overflow : Fault::None;
  case BinaryOp::Subtract:
    return __builtin_sub_overflow(a, b, &result) ? Fault::Overflow : Fault::None;
  case BinaryOp::Multiply:
    return __builtin_mul_overflow(a, b, &result) ? Fault::Overflow : Fault::None;
  default:
    break;
  }
  if (b == 0)
    return Fault::DivisionByZero;
  if (b == -1) {
    // The processor traps on the smallest integer divided by -1.
    if (op == BinaryOp::Modulo) {
      result = 0;
      return Fault::None;
    }
    return __builtin_sub_overflow(int64_t(0), a, &result) ? Fault::Overflow : Fault::None;
  }
  if (op == BinaryOp::Divide) {
    result = a / b;
    return a % b != 0 ? Fault::NotExact : Fault::None;
  }
  result = op == BinaryOp::FloorDivide ? floorDivide(a, b) : floorModulo(a, b);
  return Fault::None;
}

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_ARITHMETIC_H
