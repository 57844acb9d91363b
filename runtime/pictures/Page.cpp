//===- Page.cpp - a page to explore a schedule with -------------------------===//
//
// The page's own parts are the files of page/, which the build puts into PageParts.h; here they
// are put around the program.
//
//===----------------------------------------------------------------------===//

#include "PageData.h"
#include "PageParts.h"
#include "dualpipe/Runtime/Pictures.h"

#include "dualpipe/Support/Quote.h"

#include <fmt/format.h>

namespace dualpipe::runtime {

/// What a page's numbers hold exactly.
static constexpr Ticks kLongest = Ticks(1) << 53;

static const char *getName(Theme theme) {
  switch (theme) {
  case Theme::Auto:
    return "auto";
  case Theme::Light:
    return "light";
  case Theme::Dark:
    return "dark";
  }
  return "";
}

/// Replaces each {{NAME}} of the template once.
static std::string fill(std::string_view page,
                        const std::vector<std::pair<std::string_view, std::string_view>> &parts) {
  std::string text;
  while (true) {
    const size_t begin = page.find("{{");
    if (begin == page.npos)
      return text.append(page);
    const size_t end = page.find("}}", begin);
    text.append(page.substr(0, begin));
    const std::string_view name = page.substr(begin + 2, end - begin - 2);
    for (const auto &[known, value] : parts)
      if (known == name)
        text.append(value);
    page.remove_prefix(end + 2);
  }
}

Result<std::string> printPage(const program::Program &program, const Prediction &prediction,
                              Theme theme) {
  if (prediction.costs.hasContention())
    return Status::failure("a page's own model has no shared cores and links: expected no costs "
                           "'cores' and 'links', or --emit=svg or trace");
  if (prediction.makespan >= kLongest)
    return Status::failure(
        fmt::format("a makespan of {} is too long for a page's numbers, expected "
                    "times in a larger unit",
                    Costs::printTicks(prediction.makespan)));
  const std::string title = escapeXml(
      fmt::format("{}: {} ranks, {} stages, {} micro-batches", prediction.schedule,
                  program.shared.numRanks, prediction.numStages, prediction.numMicrobatches));
  const std::string script = std::string(kPageProgramJs) + kPageCostsJs + kPageModelJs +
                             kPageChartJs + kPageMemoryJs + kPageMainJs;
  return fill(kPageTemplate, {{"TITLE", title},
                              {"THEME", getName(theme)},
                              {"STYLE", kPageStyle},
                              {"SCRIPT", script},
                              {"FACTS", printPageFacts(program, prediction.costs)},
                              {"PROGRAM", printPageProgram(program)}});
}

} // namespace dualpipe::runtime
