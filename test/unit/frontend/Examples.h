//===- Examples.h - the schedules of examples/ -----------------------------===//

#ifndef DUALPIPE_TEST_UNIT_FRONTEND_EXAMPLES_H
#define DUALPIPE_TEST_UNIT_FRONTEND_EXAMPLES_H

#include "Harness.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace dualpipe::frontend {

/// The `.pipe` files of a folder of the repository and the folders in it, by their paths in it.
inline Files readPipeFiles(const std::string &folder) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(DUALPIPE_SOURCE_DIR) / folder;
  Files files;
  for (const fs::directory_entry &entry : fs::recursive_directory_iterator(root))
    if (entry.path().extension() == ".pipe")
      files[fs::relative(entry.path(), root).string()] = readFile(entry.path().string());
  EXPECT_FALSE(files.empty()) << "no .pipe file in " << root;
  return files;
}

inline Files readExamples() { return readPipeFiles("examples"); }

} // namespace dualpipe::frontend

#endif // DUALPIPE_TEST_UNIT_FRONTEND_EXAMPLES_H
