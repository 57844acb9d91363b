//===- OpKind.cpp - names of the kinds of compute ops -----------------------===//

#include "dualpipe/Schedule/OpKind.h"

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
