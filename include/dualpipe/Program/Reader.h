//===- Reader.h - reading `.dpx` files --------------------------------------===//

#ifndef DUALPIPE_PROGRAM_READER_H
#define DUALPIPE_PROGRAM_READER_H

#include "dualpipe/Program/Program.h"
#include "dualpipe/Support/Status.h"

#include <optional>
#include <string>
#include <vector>

namespace dualpipe::program {

/// Reads a program file and verifies what it holds: container, checksums, every
/// index in range (P3) and the rest of `verifyProgram`. Trusts nothing in it.
/// With `onlyRank`, reads the shared section and that rank's only. Messages name
/// the file and what is wrong with it ("truncated", "section 3 (rank 2) does
/// not match its checksum", "written by a newer version 2.0, this reads 1.0").
Result<Program> readProgramFile(const std::string &path, std::optional<uint32_t> onlyRank = {});

/// The same from memory; `name` stands for the file in messages.
Result<Program> readProgram(const std::string &name, const uint8_t *bytes, size_t size,
                            std::optional<uint32_t> onlyRank = {});

/// The same without verifying what the program does: container, checksums and structure only, for
/// those who go on to verify it themselves. An index in it may lead anywhere.
Result<Program> readUnverifiedProgram(const std::string &name, const uint8_t *bytes, size_t size);

/// What all ranks share, verified, and none of the ranks.
Result<SharedInfo> readSharedFile(const std::string &path);

} // namespace dualpipe::program

#endif // DUALPIPE_PROGRAM_READER_H
