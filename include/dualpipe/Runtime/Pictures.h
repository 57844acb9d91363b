//===- Pictures.h - a schedule to look at -----------------------------------===//
//
// Drawn from a program and its run in virtual time, as reports are: what is drawn is what will run.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_PICTURES_H
#define DUALPIPE_RUNTIME_PICTURES_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Runtime/Prediction.h"

#include <string>

namespace dualpipe::runtime {

/// Light or dark; `Auto` asks the viewer's settings and is light on paper.
enum class Theme : uint8_t { Auto, Light, Dark };

/// A Gantt chart: a row for each rank, time to the right. One SVG document, without scripts,
/// with a newline at the end. Details go as bars get narrow: first numbers, then what tells about
/// single ops. `run` is a simulation of the whole `program` with its times, `prediction` what there
/// is to say about it.
std::string printSvg(const program::Program &program, const Simulation &run,
                     const Prediction &prediction, Theme theme);

/// A page to explore a schedule with: one HTML document that needs no network. It simulates the
/// program itself, for other costs too. Fails where times are too long for a page's numbers
/// (2^53 ticks), and for costs with contention, which its model has not.
Result<std::string> printPage(const program::Program &program, const Prediction &prediction,
                              Theme theme);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_PICTURES_H
