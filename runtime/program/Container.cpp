//===- Container.cpp - the outer layout of `.dpx` files ---------------------===//

#include "Container.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

namespace dualpipe::program {

/// Like the magic of PNG: a byte that no text has, and line ends that a transfer
/// in text mode would change.
static constexpr uint8_t kMagic[8] = {0x89, 'D', 'P', 'X', '\r', '\n', 0x1a, '\n'};
static constexpr size_t kChecksumOffset = 24;

static uint64_t readBytes(const uint8_t *from, unsigned count) {
  uint64_t value = 0;
  for (unsigned i = 0; i != count; ++i)
    value |= uint64_t(from[i]) << (8 * i);
  return value;
}

static void writeBytes(uint8_t *to, uint64_t value, unsigned count) {
  for (unsigned i = 0; i != count; ++i)
    to[i] = uint8_t(value >> (8 * i));
}

static uint64_t padded(uint64_t size) { return (size + 7) & ~uint64_t(7); }

/// Checksum of header and directory, the checksum's own bytes as zero.
static uint64_t hashFront(const uint8_t *bytes, size_t size) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, bytes, kChecksumOffset);
  const uint8_t zeros[8] = {};
  XXH3_64bits_update(&state, zeros, sizeof(zeros));
  XXH3_64bits_update(&state, bytes + kHeaderSize, size - kHeaderSize);
  return XXH3_64bits_digest(&state);
}

static void writeEntry(uint8_t *to, const SectionEntry &entry) {
  writeBytes(to, uint32_t(entry.kind), 4);
  writeBytes(to + 4, entry.rank, 4);
  writeBytes(to + 8, entry.offset, 8);
  writeBytes(to + 16, entry.size, 8);
  writeBytes(to + 24, entry.checksum, 8);
  writeBytes(to + 32, 0, 8);
}

std::vector<uint8_t> packContainer(const std::vector<SectionBytes> &sections) {
  const uint64_t front = kHeaderSize + sections.size() * kEntrySize;
  uint64_t total = front;
  for (const SectionBytes &section : sections)
    total += padded(section.bytes->size());

  std::vector<uint8_t> file(total, 0);
  std::memcpy(file.data(), kMagic, sizeof(kMagic));
  writeBytes(&file[8], kMajorVersion, 2);
  writeBytes(&file[10], kMinorVersion, 2);
  writeBytes(&file[12], sections.size(), 4);
  writeBytes(&file[16], total, 8);

  uint64_t offset = front;
  for (size_t i = 0; i != sections.size(); ++i) {
    const std::vector<uint8_t> &bytes = *sections[i].bytes;
    const uint64_t size = padded(bytes.size());
    if (!bytes.empty())
      std::memcpy(&file[offset], bytes.data(), bytes.size());
    const uint64_t checksum = XXH3_64bits(file.data() + offset, size);
    writeEntry(&file[kHeaderSize + i * kEntrySize],
               {sections[i].kind, sections[i].rank, offset, size, checksum});
    offset += size;
  }
  writeBytes(&file[kChecksumOffset], hashFront(file.data(), front), 8);
  return file;
}

Status checkVersion(Version file, Version reader) {
  if (file.major == reader.major && file.minor <= reader.minor)
    return Status::success();
  const char *age = file.major < reader.major ? "older" : "newer";
  return Status::failure(fmt::format("written by a version of the format, {}.{}, that is {} than "
                                     "{}.{}, which this program reads; compile the schedule again",
                                     file.major, file.minor, age, reader.major, reader.minor));
}

Result<Header> parseHeader(const uint8_t *bytes, size_t size, uint64_t fileSize) {
  const size_t known = size < sizeof(kMagic) ? size : sizeof(kMagic);
  if (size == 0)
    return Status::failure("the file is empty, expected a compiled program");
  if (std::memcmp(bytes, kMagic, known) != 0)
    return Status::failure("not a compiled program (.dpx)");
  if (size < kHeaderSize)
    return Status::failure(
        fmt::format("truncated: {} bytes, the header alone has {}", fileSize, kHeaderSize));
  if (Status status =
          checkVersion({uint16_t(readBytes(bytes + 8, 2)), uint16_t(readBytes(bytes + 10, 2))});
      !status.ok())
    return status;

  Header header;
  header.numSections = uint32_t(readBytes(bytes + 12, 4));
  header.fileSize = readBytes(bytes + 16, 8);
  header.checksum = readBytes(bytes + kChecksumOffset, 8);
  if (header.fileSize > fileSize)
    return Status::failure(
        fmt::format("truncated: {} bytes, expected {}", fileSize, header.fileSize));
  if (header.fileSize < fileSize)
    return Status::failure(fmt::format("{} bytes, expected {}: something follows the program",
                                       fileSize, header.fileSize));
  if (header.getDirectoryEnd() > fileSize)
    return Status::failure(fmt::format("a directory of {} sections does not fit into {} bytes",
                                       header.numSections, fileSize));
  return header;
}

static SectionEntry readEntry(const uint8_t *from) {
  return {SectionKind(readBytes(from, 4)), uint32_t(readBytes(from + 4, 4)), readBytes(from + 8, 8),
          readBytes(from + 16, 8), readBytes(from + 24, 8)};
}

/// The shared section first, then ranks in ascending order.
static bool isInOrder(const std::vector<SectionEntry> &entries, const SectionEntry &next) {
  if (entries.empty())
    return next.kind == SectionKind::Shared && next.rank == 0;
  if (next.kind != SectionKind::Rank)
    return false;
  return entries.size() == 1 || next.rank > entries.back().rank;
}

Result<std::vector<SectionEntry>> parseDirectory(const Header &header, const uint8_t *bytes) {
  if (hashFront(bytes, header.getDirectoryEnd()) != header.checksum)
    return Status::failure("the header does not match its checksum");

  std::vector<SectionEntry> entries;
  entries.reserve(header.numSections);
  uint64_t offset = header.getDirectoryEnd();
  for (uint32_t i = 0; i != header.numSections; ++i) {
    const uint8_t *from = bytes + kHeaderSize + size_t(i) * kEntrySize;
    const SectionEntry entry = readEntry(from);
    if (!isInOrder(entries, entry) || readBytes(from + 32, 8) != 0)
      return Status::failure(fmt::format("section {} has an unexpected kind or rank", i));
    if (entry.offset != offset || entry.size % 8 != 0 || entry.size > header.fileSize - offset)
      return Status::failure(fmt::format("section {} lies outside the file or leaves a gap", i));
    offset += entry.size;
    entries.push_back(entry);
  }
  if (entries.empty())
    return Status::failure("the file has no shared section");
  if (offset != header.fileSize)
    return Status::failure("the sections do not fill the file");
  return entries;
}

Status checkSection(const SectionEntry &entry, size_t index, const uint8_t *bytes) {
  if (XXH3_64bits(bytes, entry.size) == entry.checksum)
    return Status::success();
  const std::string what = entry.kind == SectionKind::Shared ? std::string("shared")
                                                             : fmt::format("rank {}", entry.rank);
  return Status::failure(fmt::format("section {} ({}) does not match its checksum", index, what));
}

} // namespace dualpipe::program
