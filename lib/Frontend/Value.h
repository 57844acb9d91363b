//===- Value.h - values of the language ------------------------------------===//

#ifndef DUALPIPE_LIB_FRONTEND_VALUE_H
#define DUALPIPE_LIB_FRONTEND_VALUE_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace dualpipe::frontend {

/// A value of 16 bytes that is copied freely. Tuples and strings refer to
/// storage that their evaluator keeps.
struct Value {
  enum class Kind : uint8_t {
    /// The result of a faulty expression. It is silent: the fault has been
    /// reported where it arose.
    Poison,
    Integer,
    /// In millionths.
    Decimal,
    Boolean,
    String,
    /// `count` elements from `offset` on in the evaluator's store.
    Tuple,
    /// A pipeline, by its number.
    Pipeline,
    /// A family of pipelines, by its number.
    Family,
    /// Stage `stage` (counted within its pipeline) of pipeline `count`.
    Chunk,
  };

  static Value poison() { return {}; }
  static Value ofInteger(int64_t integer) { return make(Kind::Integer, 0, integer); }
  static Value ofDecimal(int64_t millionths) { return make(Kind::Decimal, 0, millionths); }
  static Value ofBoolean(bool boolean) { return make(Kind::Boolean, 0, boolean); }
  static Value ofString(llvm::StringRef text) {
    Value value = make(Kind::String, uint32_t(text.size()), 0);
    value.text = text.data();
    return value;
  }
  static Value ofTuple(size_t offset, size_t count) {
    return make(Kind::Tuple, uint32_t(count), int64_t(offset));
  }
  static Value ofPipeline(uint32_t pipeline) { return make(Kind::Pipeline, pipeline, 0); }
  static Value ofFamily(uint32_t family) { return make(Kind::Family, family, 0); }
  static Value ofChunk(uint32_t pipeline, uint32_t stage) {
    return make(Kind::Chunk, pipeline, stage);
  }

  bool is(Kind other) const { return kind == other; }
  bool isPoison() const { return kind == Kind::Poison; }
  bool getBoolean() const { return integer != 0; }
  llvm::StringRef getString() const { return {text, count}; }
  uint32_t getPipeline() const { return count; }
  uint32_t getFamily() const { return count; }
  uint32_t getStage() const { return uint32_t(integer); }
  size_t getOffset() const { return size_t(integer); }

  Kind kind = Kind::Poison;
  uint32_t count = 0;
  union {
    int64_t integer = 0;
    const char *text;
  };

private:
  static Value make(Kind kind, uint32_t count, int64_t integer) {
    Value value;
    value.kind = kind;
    value.count = count;
    value.integer = integer;
    return value;
  }
};

static_assert(sizeof(Value) == 16, "values are copied in the inner loop");

/// How a kind of value is named in a message: `an integer`.
const char *describe(Value::Kind kind);

} // namespace dualpipe::frontend

#endif // DUALPIPE_LIB_FRONTEND_VALUE_H
