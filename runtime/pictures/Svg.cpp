//===- Svg.cpp - a step as a Gantt chart ------------------------------------===//
//
// Colours are in a style sheet, so that the viewer's dark mode needs no second picture. Positions
// are in pixels with at most two places. Single bars are rectangles that tell what they are when
// pointed at; where there are too many, those of one colour in a row are one path of thick
// lines, which is a few bytes a bar.
//
//===----------------------------------------------------------------------===//

#include "Chart.h"
#include "Palette.h"
#include "dualpipe/Runtime/Pictures.h"

#include "dualpipe/Program/Verify.h"
#include "dualpipe/Support/Quote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace dualpipe::runtime {

using program::kNone;

namespace {

/// Sizes in pixels.
struct Layout {
  double left = 62, right = 18, top = 0, width = 0; ///< of the area with the bars
  double rowHeight = 0, rowGap = 0, phaseHeight = 0;
  double perTick = 0;
  bool single = true; ///< every bar is a rectangle of its own
  double grid = 0.01; ///< to which positions are rounded

  double getPitch() const { return rowHeight + rowGap + phaseHeight; }
};

constexpr double kMinWidth = 720, kMaxWidth = 2400;
/// At which the shortest bar has room for two digits.
constexpr double kGoodBar = 22;
constexpr uint64_t kMaxSingleBars = 4000;
/// The distance of lines that say what ops take.
constexpr double kTimeLine = 14;

class SvgPrinter {
public:
  SvgPrinter(const program::Program &program, const Simulation &run, const Prediction &prediction,
             Theme theme)
      : program(program), prediction(prediction), theme(theme),
        chart(makeChart(program, run.commands)) {}
  std::string print();

private:
  template <typename... Args> void to(fmt::format_string<Args...> format, Args &&...args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  }
  void layOut();
  void addStyle();
  void addSurface(const Surface &surface);
  void addTitle();
  void addLegend();
  void addLegendItem(double patchWidth, const std::string &label);
  void addPatch(double x, const std::string &name, double mark);
  void addLegendKind(BarKind kind);
  void addAxis(double bottom);
  void addRow(const Row &row, double y);
  void addPhases(const Row &row, double y);
  void addBars(const Row &row);
  void addBar(const Row &row, const Bar &bar);
  void addNumbers(const Row &row);
  void addPaths(const Row &row);
  void addFrames(const Row &row);
  std::string describe(const Row &row, const Bar &bar) const;

  double getX(Ticks ticks) const { return layout.perTick * double(ticks); }
  double round(double x) const { return std::round(x / layout.grid) * layout.grid; }
  double getTop(const Bar &bar) const { return layout.rowHeight * bar.part / bar.parts; }
  double getHeight(const Bar &bar) const { return layout.rowHeight / bar.parts; }
  std::string getClass(const Bar &bar) const;

  const program::Program &program;
  const Prediction &prediction;
  const Theme theme;
  const Chart chart;
  Layout layout;
  std::vector<std::string> timeLines; ///< what ops take
  double legendX = 0, legendY = 0;    ///< where the next patch goes
  std::string text;
};

} // namespace

/// The shortest text with at most two places.
static std::string num(double value) {
  std::string digits = fmt::format("{:.2f}", value);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.')
    digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

static std::string printTicks(Ticks ticks) { return Costs::printTicks(ticks); }

/// Of text in the chart's font, about.
static double getTextWidth(const std::string &text, double size) {
  return double(text.size()) * size * 0.56;
}

//===----------------------------------------------------------------------===//
// Layout and style
//===----------------------------------------------------------------------===//

void SvgPrinter::layOut() {
  const size_t rows = chart.rows.size();
  layout.rowHeight = rows <= 16 ? 28 : rows <= 32 ? 18 : rows <= 64 ? 11 : rows <= 128 ? 6 : 3;
  layout.rowGap = rows <= 16 ? 5 : rows <= 64 ? 2 : 1;
  const bool hasPhases = std::any_of(chart.rows.begin(), chart.rows.end(),
                                     [](const Row &row) { return !row.phases.empty(); });
  layout.phaseHeight = hasPhases && rows <= 16 ? 10 : 0;
  const double makespan = std::max(1.0, double(prediction.makespan));
  const double good = kGoodBar * makespan / std::max(1.0, double(chart.shortest));
  layout.width = std::clamp(good, kMinWidth, kMaxWidth);
  layout.perTick = layout.width / makespan;
  layout.single = chart.numBars <= kMaxSingleBars;
  if (layout.single)
    return;
  // What is narrower is sampled, so that the size of a picture is bounded by its pixels.
  layout.grid = double(chart.shortest) * layout.perTick >= 1 ? 0.1 : rows <= 128 ? 0.5 : 2;
}

std::string SvgPrinter::getClass(const Bar &bar) const {
  static constexpr char kLetters[kNumBarKinds] = {'f', 'b', 'i', 'w', 's', 'r'};
  return fmt::format("{}{}", kLetters[unsigned(bar.kind)], bar.variant);
}

void SvgPrinter::addSurface(const Surface &surface) {
  to(".bg{{fill:{}}}.row{{fill:{}}}text{{fill:{}}}.faint{{fill:{}}}.grid{{stroke:{}}}"
     ".frame{{stroke:{}}}.tick{{stroke:{}}}\n",
     surface.background, surface.row, surface.text, surface.faint, surface.line, surface.frame,
     surface.faint);
}

void SvgPrinter::addStyle() {
  to("<style>\n");
  if (theme != Theme::Dark)
    addSurface(kLight);
  else
    addSurface(kDark);
  if (theme == Theme::Auto) {
    to("@media screen and (prefers-color-scheme:dark){{\n");
    addSurface(kDark);
    to("}}\n");
  }
  to("text{{font:10px 'Helvetica Neue',Helvetica,Arial,'Liberation Sans',sans-serif}}"
     ".title{{font-size:17px;font-weight:600}}.sub{{font-size:12px}}"
     ".n text{{text-anchor:middle;fill:#16181b}}.n .d{{fill:#fff}}.n .h{{font-size:9px}}"
     ".mid{{text-anchor:middle}}.end{{text-anchor:end}}.phase{{font-size:8.5px;font-style:italic}}"
     ".grid,.tick{{stroke-width:1;fill:none}}.frame{{fill:none;stroke-width:1.5}}"
     ".mark{{fill:#16181b;fill-opacity:.75}}.patch{{fill:#b9bec5}}path{{fill:none}}\n");
  const uint32_t count = uint32_t(chart.variants.size());
  for (unsigned kind = 0; kind != kNumBarKinds; ++kind) {
    if (!chart.has[kind])
      continue;
    const bool hasVariants = BarKind(kind) <= BarKind::BwdWeight;
    for (uint32_t variant = 0; variant != (hasVariants ? count : 1); ++variant) {
      const std::string name = getClass({BarKind(kind), 0, 1, variant, 0, 0, 0, 0, 0});
      const std::string colour = getColour(BarKind(kind), variant, count);
      to(".{0}{{fill:{1}}}", name, colour);
      if (!layout.single)
        to("path.{0}{{fill:none;stroke:{1}}}", name, colour);
    }
  }
  to("\n</style>\n");
}

//===----------------------------------------------------------------------===//
// Around the chart
//===----------------------------------------------------------------------===//

/// How pairs start is told for programs that have some.
static std::string describeTimes(const Prediction &prediction) {
  const SimulationCosts &costs = prediction.costs;
  const bool isMeasured = !costs.profileOption.empty();
  std::string text = (isMeasured ? "times in ms: " : "times: ") + runtime::describeCosts(costs);
  text.erase(text.rfind(", start ")); // the last cost
  if (isMeasured)
    text += fmt::format(", from --cost={}", costs.profileOption);
  if (!prediction.hasPairs)
    return text;
  const bool isJoint = costs.pairStart == PairStart::Joint;
  return text + (isJoint ? "; members of a fused pair start together"
                         : "; members of a fused pair start separately");
}

/// Breaks behind spaces; a word that is longer than a line stays whole.
static std::vector<std::string> wrap(const std::string &text, double width, double size) {
  std::vector<std::string> lines(1);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!lines.back().empty() && getTextWidth(lines.back() + " " + word, size) > width)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return lines;
}

void SvgPrinter::addTitle() {
  const program::SharedInfo &shared = program.shared;
  const double percent = prediction.makespan == 0 ? 0
                                                  : 100 * double(prediction.getWorstBubble()) /
                                                        double(prediction.makespan);
  to("<text class=\"title\" x=\"{}\" y=\"26\">{}: {} ranks, {} stages, {} micro-batches</text>\n",
     num(layout.left), escapeXml(shared.schedule), shared.numRanks, shared.numStages,
     shared.numMicrobatches);
  to("<text class=\"sub\" x=\"{}\" y=\"45\">makespan {}, ideal {}, worst rank's bubble: {} "
     "({:.1f} %)</text>\n",
     num(layout.left), printTicks(prediction.makespan), printTicks(prediction.ideal),
     printTicks(prediction.getWorstBubble()), percent);
  for (size_t line = 0; line != timeLines.size(); ++line)
    to("<text class=\"faint\" x=\"{}\" y=\"{}\">{}</text>\n", num(layout.left),
       num(61 + kTimeLine * double(line)), escapeXml(timeLines[line]));
}

/// A colour, and the mark at its foot.
void SvgPrinter::addPatch(double x, const std::string &name, double mark) {
  to("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"14\" height=\"13\"/>", name, num(x),
     num(legendY));
  if (mark > 0)
    to("<rect class=\"mark\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"2\"/>", num(x),
       num(legendY + 11), num(14 * mark));
}

/// Makes room for patches and writes what stands behind them; `legendX` stays before the patches.
void SvgPrinter::addLegendItem(double patchWidth, const std::string &label) {
  if (legendX > layout.left &&
      legendX + patchWidth + getTextWidth(label, 10) > layout.left + layout.width) {
    legendX = layout.left;
    legendY += 18;
  }
  to("<text x=\"{}\" y=\"{}\">{}</text>", num(legendX + patchWidth + 4), num(legendY + 10),
     escapeXml(label));
}

static double getLegendWidth(double patchWidth, const std::string &label) {
  return patchWidth + 4 + getTextWidth(label, 10) + 14;
}

/// A patch for each variant, then the name of the kind.
void SvgPrinter::addLegendKind(BarKind kind) {
  const bool hasVariants = kind <= BarKind::BwdWeight;
  const uint32_t count = hasVariants ? uint32_t(chart.variants.size()) : 1;
  const double width = 15.0 * count;
  addLegendItem(width, getName(kind));
  for (uint32_t variant = 0; variant != count; ++variant)
    addPatch(legendX + 15 * variant, getClass({kind, 0, 1, variant, 0, 0, 0, 0, 0}),
             getMark(variant, count));
  to("\n");
  legendX += getLegendWidth(width, getName(kind));
}

/// Kinds, then what the marks mean: the colours of a kind are in the same order.
void SvgPrinter::addLegend() {
  legendX = layout.left;
  legendY = 71 + kTimeLine * double(timeLines.size() - 1);
  for (unsigned kind = 0; kind != kNumBarKinds; ++kind)
    if (chart.has[kind])
      addLegendKind(BarKind(kind));
  const auto addOther = [&](const char *name, const std::string &label, double mark) {
    addLegendItem(14, label);
    addPatch(legendX, name, mark);
    to("\n");
    legendX += getLegendWidth(14, label);
  };
  if (chart.variants.size() > 1)
    for (uint32_t variant = 0; variant != chart.variants.size(); ++variant)
      addOther("patch", chart.variants[variant], getMark(variant, uint32_t(chart.variants.size())));
  if (std::any_of(chart.rows.begin(), chart.rows.end(),
                  [](const Row &row) { return !row.frames.empty(); }))
    addOther("frame", "fused: both at once", 0);
  addOther("row", "idle", 0);
}

/// 1, 2 or 5 times a power of ten, so that labels keep a distance.
static Ticks getTickDistance(double perTick) {
  for (Ticks power = 1;; power *= 10)
    for (Ticks factor : {1, 2, 5})
      if (double(power * factor) * perTick >= 55 || power > std::numeric_limits<Ticks>::max() / 100)
        return power * factor;
}

void SvgPrinter::addAxis(double bottom) {
  const Ticks distance = getTickDistance(layout.perTick);
  std::string lines, labels;
  for (Ticks at = 0; at <= prediction.makespan; at += distance) {
    lines +=
        fmt::format("M{} {}V{}", num(layout.left + getX(at)), num(layout.top - 4), num(bottom + 4));
    labels += fmt::format("<text class=\"mid faint\" x=\"{}\" y=\"{}\">{}</text>",
                          num(layout.left + getX(at)), num(bottom + 16), printTicks(at));
  }
  to("<path class=\"grid\" d=\"{}\"/>\n{}\n", lines, labels);
  to("<text class=\"faint\" x=\"{}\" y=\"{}\">time, in {}</text>\n", num(layout.left),
     num(bottom + 31),
     prediction.costs.profileOption.empty() ? "the units of the costs" : "milliseconds");
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

std::string SvgPrinter::describe(const Row &row, const Bar &bar) const {
  const uint32_t loc = program.ranks[row.rank].commands[bar.command].loc;
  std::string text = bar.microbatch == kNone
                         ? fmt::format("{} of stage {}", getName(bar.kind), bar.stage)
                         : fmt::format("{} of micro-batch {}, stage {}", getName(bar.kind),
                                       bar.microbatch, bar.stage);
  return fmt::format("{}, rank {}: {} to {}\n{}", text, row.rank, printTicks(bar.start),
                     printTicks(bar.end), program::describeLocation(program.shared, loc));
}

/// A sum of gradients runs beside the computes: a thin bar below them.
static constexpr double kReduceHeight = 3;

void SvgPrinter::addBar(const Row &row, const Bar &bar) {
  const double x = getX(bar.start), width = getX(bar.end) - x;
  const bool isReduce = bar.kind == BarKind::Reduce;
  const double top = isReduce ? layout.rowHeight : getTop(bar);
  const double height = isReduce ? std::min(kReduceHeight, layout.rowGap) : getHeight(bar);
  const double gap = width > 3 ? 0.5 : 0;
  to("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
     getClass(bar), num(x + gap), num(top), num(width - 2 * gap), num(height),
     escapeXml(describe(row, bar)));
  const double mark = getMark(bar.variant, uint32_t(chart.variants.size()));
  if (mark > 0 && width > 6 && !isReduce && bar.kind != BarKind::Step)
    to("<rect class=\"mark\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"2\"/>", num(x + gap),
       num(top + height - 2), num((width - 2 * gap) * mark));
}

void SvgPrinter::addBars(const Row &row) {
  for (const Bar &bar : row.bars) {
    addBar(row, bar);
    text += '\n';
  }
}

void SvgPrinter::addNumbers(const Row &row) {
  to("<g class=\"n\">\n");
  for (const Bar &bar : row.bars) {
    if (bar.microbatch == kNone)
      continue;
    const std::string number = fmt::format("{}", bar.microbatch);
    const double width = getX(bar.end - bar.start), height = getHeight(bar);
    if (height < 9 || width < getTextWidth(number, 10) + 2)
      continue;
    const char *names[2][2] = {{"", " class=\"d\""}, {" class=\"h\"", " class=\"d h\""}};
    const double size = bar.parts > 1 ? 9 : 10;
    to("<text{} x=\"{}\" y=\"{}\">{}</text>", names[bar.parts > 1][isDark(bar.kind)],
       num(getX(bar.start) + width / 2), num(getTop(bar) + height / 2 + 0.36 * size), number);
  }
  to("\n</g>\n");
}

/// By colour and place in the row, all bars as lines that are as thick as bars.
void SvgPrinter::addPaths(const Row &row) {
  struct Path {
    double at = -1, height = 0;
    std::string text;
  };
  std::map<std::pair<double, std::string>, Path> paths; // in order, so that the output is
  std::map<double, double> reached;                     // by place in the row
  for (const Bar &bar : row.bars) {
    const bool isReduce = bar.kind == BarKind::Reduce;
    const double height = isReduce ? std::min(kReduceHeight, layout.rowGap) : getHeight(bar);
    const double middle = (isReduce ? layout.rowHeight : getTop(bar)) + height / 2;
    const double begin = std::max(round(getX(bar.start)), reached[middle]);
    const double end = round(getX(bar.end));
    if (end <= begin)
      continue;
    reached[middle] = end;
    Path &path = paths[{middle, getClass(bar)}];
    path.height = height;
    const double gap = end - begin > 3 ? 0.4 : 0;
    if (path.at < 0)
      path.text = fmt::format("M{} {}", num(begin), num(middle));
    else if (begin != path.at)
      path.text += fmt::format("m{} 0", num(begin - path.at));
    path.text += fmt::format("h{}", num(end - begin - gap));
    path.at = end - gap;
  }
  for (const auto &[key, path] : paths)
    to("<path class=\"{}\" stroke-width=\"{}\" d=\"{}\"/>\n", key.second, num(path.height),
       path.text);
}

void SvgPrinter::addFrames(const Row &row) {
  std::string lines;
  for (const Frame &frame : row.frames) {
    const double x = getX(frame.start), width = getX(frame.end) - x;
    if (width >= 5 && layout.rowHeight >= 9)
      lines += fmt::format("M{} {}h{}v{}h-{}z", num(x + 0.5), "0", num(width - 1),
                           num(layout.rowHeight), num(width - 1));
  }
  if (!lines.empty())
    to("<path class=\"frame\" d=\"{}\"/>\n", lines);
}

/// A tick where a phase begins; its name above where there is room up to the next one.
void SvgPrinter::addPhases(const Row &row, double y) {
  std::string ticks;
  for (size_t i = 0; i != row.phases.size(); ++i) {
    const double x = layout.left + getX(row.phases[i].start);
    const bool isLast = i + 1 == row.phases.size();
    const double next = layout.left + getX(isLast ? prediction.makespan : row.phases[i + 1].start);
    const std::string &name = program.shared.phaseNames[row.phases[i].name];
    ticks += fmt::format("M{} {}V{}", num(x), num(y - layout.phaseHeight + 1),
                         num(y + (layout.phaseHeight == 0 ? layout.rowHeight : -1)));
    if (layout.phaseHeight != 0 && getTextWidth(name, 8.5) + 5 <= next - x)
      to("<text class=\"phase faint\" x=\"{}\" y=\"{}\">{}</text>", num(x + 3), num(y - 2.5),
         escapeXml(name));
  }
  if (!ticks.empty() && layout.phaseHeight != 0)
    to("<path class=\"tick\" d=\"{}\"/>\n", ticks);
}

void SvgPrinter::addRow(const Row &row, double y) {
  const double labelEvery = std::ceil(11 / layout.getPitch());
  if (row.rank % uint32_t(labelEvery) == 0)
    to("<text class=\"end\" x=\"{}\" y=\"{}\">rank {}</text>\n", num(layout.left - 8),
       num(y + layout.rowHeight / 2 + 3.6), row.rank);
  to("<rect class=\"row\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", num(layout.left),
     num(y), num(layout.width), num(layout.rowHeight));
  addPhases(row, y);
  to("<g transform=\"translate({} {})\">\n", num(layout.left), num(y));
  if (layout.single)
    addBars(row);
  else
    addPaths(row);
  addFrames(row);
  addNumbers(row);
  to("</g>\n");
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

std::string SvgPrinter::print() {
  layOut();
  timeLines = wrap(describeTimes(prediction), layout.width, 10);
  addLegend(); // first: how many lines it takes decides where the rows are
  const std::string legend = std::exchange(text, "");
  layout.top = legendY + 27 + layout.phaseHeight;
  const double bottom = layout.top + layout.getPitch() * double(chart.rows.size()) - layout.rowGap -
                        layout.phaseHeight;
  const double width = layout.left + layout.width + layout.right, height = bottom + 42;
  to("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
     "height=\"{1}\" role=\"img\">\n<title>{2}</title>\n",
     num(width), num(height), escapeXml(program.shared.schedule));
  addStyle();
  to("<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n");
  addTitle();
  text += legend;
  addAxis(bottom);
  for (size_t i = 0; i != chart.rows.size(); ++i)
    addRow(chart.rows[i], layout.top + layout.getPitch() * double(i));
  to("</svg>\n");
  return std::move(text);
}

std::string printSvg(const program::Program &program, const Simulation &run,
                     const Prediction &prediction, Theme theme) {
  return SvgPrinter(program, run, prediction, theme).print();
}

} // namespace dualpipe::runtime
