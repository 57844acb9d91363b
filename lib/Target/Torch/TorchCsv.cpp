//===- TorchCsv.cpp - schedules in PyTorch's action grammar -----------------===//

#include "dualpipe/Target/TorchCsv.h"

#include <fmt/format.h>
#include <iterator>

using namespace dualpipe;

static void printGroup(const RankOrder &order, size_t begin, size_t end, std::string &out) {
  auto printOp = [&](size_t op) {
    fmt::format_to(std::back_inserter(out), "{}{}{}", order.stage[op], getLetter(order.kind[op]),
                   order.microbatch[op]);
  };
  if (end - begin == 1)
    return printOp(begin);
  for (size_t op = begin; op != end; ++op) {
    out += op == begin ? '(' : ';';
    printOp(op);
  }
  out += ")OVERLAP_F_B";
}

std::string dualpipe::printTorchCsv(const Schedule &schedule) {
  std::string out;
  for (const RankOrder &order : schedule.ranks) {
    for (size_t begin = 0, end; begin != order.size(); begin = end) {
      end = order.groupEnd(begin);
      if (begin != 0)
        out += ',';
      printGroup(order, begin, end, out);
    }
    out += '\n';
  }
  return out;
}
