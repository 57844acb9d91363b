//===- Schedule.cpp - names and look-ups of order tables --------------------===//

#include "dualpipe/Schedule/Schedule.h"

using namespace dualpipe;

const char *dualpipe::getKeyword(OpKind kind) {
  switch (kind) {
  case OpKind::Forward:
    return "fwd";
  case OpKind::Backward:
    return "bwd";
  case OpKind::BackwardInput:
    return "bwd_input";
  case OpKind::BackwardWeight:
    return "bwd_weight";
  }
  return "";
}

char dualpipe::getLetter(OpKind kind) {
  switch (kind) {
  case OpKind::Forward:
    return 'F';
  case OpKind::Backward:
    return 'B';
  case OpKind::BackwardInput:
    return 'I';
  case OpKind::BackwardWeight:
    return 'W';
  }
  return '?';
}

size_t Schedule::findPipeline(uint32_t mb) const {
  for (size_t i = 0; i != pipelines.size(); ++i)
    if (pipelines[i].holdsMicrobatch(mb))
      return i;
  return pipelines.size();
}

size_t Schedule::getNumOps() const {
  size_t count = 0;
  for (const RankOrder &rank : ranks)
    count += rank.size();
  return count;
}
