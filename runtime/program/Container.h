//===- Container.h - the outer layout of `.dpx` files -----------------------===//
//
// All numbers are little endian.
//
//   offset  bytes
//   0       8      magic
//   8       2      major version: raised when an older reader would misread
//   10      2      minor version: raised when something is added
//   12      4      number of sections
//   16      8      size of the whole file
//   24      8      XXH3 of the header, with these eight bytes as zero, and the directory
//   32      40 n   directory, one entry per section:
//                  kind (4), rank (4), offset (8), size (8), XXH3 (8), reserved zero (8)
//   ...            sections without gaps, each padded with zeros to a multiple of 8
//
// The checksums come first when a file is read: the FlatBuffers verifier lets
// most single-bit changes pass.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_RUNTIME_PROGRAM_CONTAINER_H
#define DUALPIPE_RUNTIME_PROGRAM_CONTAINER_H

#include "dualpipe/Support/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dualpipe::program {

inline constexpr uint16_t kMajorVersion = 1;
inline constexpr uint16_t kMinorVersion = 0;
inline constexpr size_t kHeaderSize = 32;
inline constexpr size_t kEntrySize = 40;

struct Version {
  uint16_t major;
  uint16_t minor;
};

/// Whether a reader of one version may read a file of another: the same major, and no newer minor.
Status checkVersion(Version file, Version reader = {kMajorVersion, kMinorVersion});

enum class SectionKind : uint32_t { Shared = 0, Rank = 1 };

/// One entry of the directory. `rank` is 0 for the shared section.
struct SectionEntry {
  SectionKind kind;
  uint32_t rank;
  uint64_t offset;
  uint64_t size;
  uint64_t checksum;
};

/// The first bytes of a file, checked as far as they can be without the rest.
struct Header {
  uint32_t numSections = 0;
  uint64_t fileSize = 0;
  uint64_t checksum = 0;

  uint64_t getDirectoryEnd() const { return kHeaderSize + uint64_t(numSections) * kEntrySize; }
};

/// A section before it is written. The bytes stay the caller's.
struct SectionBytes {
  SectionKind kind;
  uint32_t rank;
  const std::vector<uint8_t> *bytes;
};

/// The whole file for these sections, in their order.
std::vector<uint8_t> packContainer(const std::vector<SectionBytes> &sections);

/// Reads the header from the first bytes of a file that is `fileSize` long.
Result<Header> parseHeader(const uint8_t *bytes, size_t size, uint64_t fileSize);

/// Reads the directory from `bytes`, which hold the file up to the end of the
/// directory. Checks their checksum and that the sections fill the rest of the
/// file without gaps, the shared section first and then ranks in ascending order.
Result<std::vector<SectionEntry>> parseDirectory(const Header &header, const uint8_t *bytes);

/// Compares a section with its checksum; `index` is its place in the directory.
Status checkSection(const SectionEntry &entry, size_t index, const uint8_t *bytes);

} // namespace dualpipe::program

#endif // DUALPIPE_RUNTIME_PROGRAM_CONTAINER_H
