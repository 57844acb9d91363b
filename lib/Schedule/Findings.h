//===- Findings.h - what a check has found, folded ---------------------------===//

#ifndef DUALPIPE_LIB_SCHEDULE_FINDINGS_H
#define DUALPIPE_LIB_SCHEDULE_FINDINGS_H

#include "dualpipe/Support/Diagnostics.h"

#include <fmt/format.h>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace dualpipe {

/// Collects findings until they are handed to a sink. One slip in a loop makes thousands: those of
/// one kind at one place are one finding with their number, and after some findings the rest is
/// counted.
class Findings {
public:
  using Note = Diagnostic::Note;

  bool empty() const { return found.empty(); }

  /// `kind` is not shown: findings of different kinds at one place are kept apart.
  void report(const std::string &kind, SourceLoc loc, std::string message,
              std::vector<Note> notes = {}) {
    auto [entry, isNew] = numbers.try_emplace({kind, loc.file, loc.line, loc.column}, found.size());
    if (isNew)
      found.push_back({{Severity::Error, loc, std::move(message), std::move(notes)}, 0});
    else
      ++found[entry->second].more;
  }

  /// Reports to `sink`; what is too much is counted at `whole`.
  void flush(DiagnosticSink &sink, SourceLoc whole) const {
    for (size_t i = 0; i != std::min(found.size(), kMaxShown); ++i) {
      Diagnostic &diagnostic = sink.error(found[i].first.loc, found[i].first.message);
      diagnostic.notes = found[i].first.notes;
      if (found[i].more != 0)
        diagnostic.note(found[i].first.loc, fmt::format("{} more like this here", found[i].more));
    }
    if (found.size() > kMaxShown)
      sink.error(whole, fmt::format("{} more findings are not shown", found.size() - kMaxShown));
  }

private:
  static constexpr size_t kMaxShown = 20;
  struct Finding {
    Diagnostic first;
    size_t more;
  };
  std::vector<Finding> found;
  std::map<std::tuple<std::string, uint32_t, uint32_t, uint32_t>, size_t> numbers;
};

} // namespace dualpipe

#endif // DUALPIPE_LIB_SCHEDULE_FINDINGS_H
