//===- Palette.cpp - the colours of pictures --------------------------------===//

#include "Palette.h"

#include <fmt/format.h>

namespace dualpipe::runtime {

namespace {

struct Rgb {
  int red, green, blue;
};
/// The first and the last variant of a kind; about equally light (CIE L* in the comment).
struct Range {
  Rgb first, last;
};

} // namespace

static Range getRange(BarKind kind) {
  switch (kind) {
  case BarKind::Fwd: // 86
    return {{0xf8, 0xd5, 0x7e}, {0xff, 0xcc, 0xb0}};
  case BarKind::Bwd: // 44
    return {{0x2f, 0x6c, 0xae}, {0x84, 0x50, 0xa8}};
  case BarKind::BwdInput: // 73
    return {{0x7f, 0xbb, 0xea}, {0xbd, 0xac, 0xea}};
  case BarKind::BwdWeight: // 59
    return {{0x3c, 0xa0, 0x7b}, {0x96, 0x94, 0x30}};
  case BarKind::Step: // 66
    return {{0xa0, 0xa0, 0xa0}, {0xa0, 0xa0, 0xa0}};
  case BarKind::Reduce: // 52
    return {{0x7c, 0x7c, 0x7c}, {0x7c, 0x7c, 0x7c}};
  }
  return {};
}

double getMark(uint32_t variant, uint32_t numVariants) {
  return numVariants < 2 ? 0 : double(variant) / (numVariants - 1);
}

std::string getColour(BarKind kind, uint32_t variant, uint32_t numVariants) {
  const Range range = getRange(kind);
  const double part = getMark(variant, numVariants);
  const auto mix = [&](int a, int b) { return int(a + part * (b - a) + 0.5); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(range.first.red, range.last.red),
                     mix(range.first.green, range.last.green),
                     mix(range.first.blue, range.last.blue));
}

bool isDark(BarKind kind) { return kind == BarKind::Bwd; }

} // namespace dualpipe::runtime
