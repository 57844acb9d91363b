//===- Palette.h - the colours of pictures ----------------------------------===//
//
// A kind of op has a lightness, so that kinds can be told apart in greyscale and with any colour
// vision: forwards are lightest, full backwards darkest. What a micro-batch flows through changes
// the hue only, and is shown by a bar at the foot as well.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_PICTURES_PALETTE_H
#define DUALPIPE_RUNTIME_PICTURES_PALETTE_H

#include "Chart.h"

#include <string>

namespace dualpipe::runtime {

/// "#f9d27a" for variant `variant` of `numVariants`.
std::string getColour(BarKind kind, uint32_t variant, uint32_t numVariants);
/// Whether numbers on it are white.
bool isDark(BarKind kind);

/// The part of a bar's width that the mark at its foot takes, from 0 for the first variant to 1
/// for the last.
double getMark(uint32_t variant, uint32_t numVariants);

/// What is not a bar.
struct Surface {
  const char *background, *row, *text, *faint, *line, *frame;
};
inline constexpr Surface kLight{"#ffffff", "#f0f1f3", "#1c1e21", "#6a7079", "#d5d9de", "#1c1e21"};
inline constexpr Surface kDark{"#15181c", "#22262c", "#e8eaed", "#9aa2ad", "#3a414a", "#ffffff"};

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_PICTURES_PALETTE_H
