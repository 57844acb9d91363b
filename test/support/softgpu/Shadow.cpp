//===- Shadow.cpp - who touched which memory last -----------------------------===//

#include "Shadow.h"

namespace dualpipe::test::softgpu {

void Shadow::split(uint64_t at) {
  auto after = cells.upper_bound(at);
  if (after == cells.begin())
    return;
  auto cell = std::prev(after);
  if (cell->first == at || cell->second.end <= at)
    return;
  Cell second = cell->second;
  cell->second.end = at;
  cells.emplace(at, std::move(second));
}

static bool isBefore(const Toucher &toucher, const Clock &clock) {
  return clock.get(toucher.stream) >= toucher.count;
}

std::optional<Shadow::Conflict> Shadow::touch(uint64_t begin, uint64_t end, bool writes,
                                              const Toucher &toucher, const Clock &clock) {
  std::optional<Conflict> conflict;
  split(begin);
  split(end);
  for (uint64_t at = begin; at != end;) {
    auto cell = cells.lower_bound(at);
    if (cell == cells.end() || cell->first != at) // a gap, up to the next cell
      cell = cells.emplace(at, Cell{cell == cells.end() ? end : std::min(end, cell->first), {}, {}})
                 .first;
    Cell &touched = cell->second;
    if (touched.writer && !isBefore(*touched.writer, clock))
      conflict = Conflict{*touched.writer, true};
    if (writes) {
      for (const Toucher &reader : touched.readers)
        if (!isBefore(reader, clock))
          conflict = Conflict{reader, false};
      touched.readers.clear();
      touched.writer = toucher;
    } else {
      std::erase_if(touched.readers,
                    [&](const Toucher &reader) { return reader.stream == toucher.stream; });
      touched.readers.push_back(toucher);
    }
    at = touched.end;
  }
  return conflict;
}

void Shadow::forget(uint64_t begin, uint64_t end) {
  split(begin);
  split(end);
  cells.erase(cells.lower_bound(begin), cells.lower_bound(end));
}

} // namespace dualpipe::test::softgpu
