//===- ReadCsv.h - schedules from text in PyTorch's grammar -----------------===//

#ifndef DUALPIPE_TEST_SUPPORT_READCSV_H
#define DUALPIPE_TEST_SUPPORT_READCSV_H

#include "dualpipe/Schedule/Checker.h"
#include "dualpipe/Target/ReadTorchCsv.h"

#include <string>

namespace dualpipe::test {

/// What reading and checking a text gave.
struct ReadSchedule {
  Schedule schedule;
  DiagnosticSink sink;
  bool isRead = false;

  explicit ReadSchedule(const std::string &text, const TorchReadOptions &options = {}) {
    isRead = readTorchCsv(text, options, schedule, sink);
    if (isRead)
      checkSchedule(schedule, sink);
  }

  /// The messages of one severity, one a line.
  std::string getMessages(Severity severity) const {
    std::string text;
    for (const Diagnostic &found : sink.diagnostics())
      if (found.severity == severity)
        text += found.message + "\n";
    return text;
  }
  std::string getErrors() const { return getMessages(Severity::Error); }
  /// The notes of all findings, one a line.
  std::string getNotes() const {
    std::string text;
    for (const Diagnostic &found : sink.diagnostics())
      for (const Diagnostic::Note &note : found.notes)
        text += note.message + "\n";
    return text;
  }
};

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_SUPPORT_READCSV_H
