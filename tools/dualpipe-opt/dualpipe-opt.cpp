//===- dualpipe-opt.cpp - entry point ---------------------------------------===//

#include "Main.h"

int main(int argc, char **argv) { return dualpipe::opt::main(argc, argv); }
