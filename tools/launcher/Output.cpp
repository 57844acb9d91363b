//===- Output.cpp - the files that a run writes -----------------------------===//

#include "Output.h"

#include "dualpipe/Runtime/CostFile.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace dualpipe::launcher {

namespace fs = std::filesystem;

static constexpr const char *kNowhere = "/dev/null";

static Status cannotWrite(const std::string &path, std::string_view why) {
  return Status::failure(fmt::format("cannot write '{}': {}", path, why));
}

static std::string describe(int error) { return std::generic_category().message(error); }

/// The file itself where `path` is a link to it.
static std::string resolve(const std::string &path) {
  std::error_code error;
  const fs::path target = fs::weakly_canonical(path, error);
  return error ? path : target.string();
}

/// In the folder of the file, since only there it can be renamed.
static std::string getPathAside(const std::string &path) {
  return fmt::format("{}.{}.tmp", resolve(path), getpid());
}

/// Two names of one file that exists.
static bool isSameFile(const std::string &a, const std::string &b) {
  std::error_code error;
  return fs::equivalent(a, b, error);
}

/// Opens `path` and closes it; an errno, or 0.
static int tryOpen(const std::string &path, int flags) {
  const int file = open(path.c_str(), flags | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0)
    return errno;
  close(file);
  return 0;
}

/// A file that is renamed into place would replace a pipe or a device.
static Status checkKind(const std::string &path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status))
    return cannotWrite(path, "it is a directory, expected the name of a file");
  if (fs::exists(status) && !fs::is_regular_file(status))
    return cannotWrite(path, "not a regular file");
  return Status::success();
}

static Status checkWritable(const std::string &path) {
  std::error_code ignored;
  if (fs::exists(path, ignored))
    if (const int error = tryOpen(path, 0))
      return cannotWrite(path, describe(error));
  const std::string aside = getPathAside(path);
  if (const int error = tryOpen(aside, O_CREAT | O_EXCL))
    return cannotWrite(path, describe(error));
  unlink(aside.c_str());
  return Status::success();
}

static Status checkOutput(const Options &options, const std::string &path) {
  if (path.empty() || path == kNowhere)
    return Status::success();
  if (isSameFile(path, options.program))
    return cannotWrite(path, "it is the program that is to run, expected another file");
  // The name of a built-in model is no file.
  const bool isPlugin = options.model.ends_with(".so") || options.model.find('/') != path.npos;
  if (isPlugin && isSameFile(path, options.model))
    return cannotWrite(path, "it is the model that is to run, expected another file");
  if (Status status = checkKind(path); !status.ok())
    return status;
  return checkWritable(path);
}

/// What CostOption takes for a file, and pauses at random that would be measured with it.
static Status checkProfile(const Options &options) {
  const std::string &path = options.profile;
  if (options.jitterSeed && (options.explain || !path.empty()))
    return Status::failure(fmt::format("{} does not apply with --jitter, whose pauses it would "
                                       "measure",
                                       options.explain ? "--explain" : "--profile"));
  if (path.empty() || path == kNowhere)
    return Status::success();
  if (runtime::getCostFile(path) != path)
    return Status::failure(fmt::format("--profile is '{}', expected a name that ends in .json and "
                                       "has no ',' and no '=': --cost could not read it",
                                       path));
  if (!options.trace.empty() &&
      (resolve(options.trace) == resolve(path) || isSameFile(options.trace, path)))
    return Status::failure(fmt::format("--trace and --profile are the same file '{}', expected "
                                       "two",
                                       path));
  return Status::success();
}

Status checkOutputs(const Options &options) {
  if (Status status = checkProfile(options); !status.ok())
    return status;
  if (Status status = checkOutput(options, options.trace); !status.ok())
    return status;
  return checkOutput(options, options.profile);
}

static Status writeAside(const std::string &path, const std::string &aside,
                         const std::string &text) {
  errno = 0;
  std::ofstream file(aside, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  file.close();
  return file.good() ? Status::success() : cannotWrite(path, describe(errno));
}

Status writeOutput(const std::string &path, const std::string &text) {
  if (path == kNowhere)
    return Status::success();
  const std::string aside = getPathAside(path);
  Status status = writeAside(path, aside, text);
  if (status.ok() && rename(aside.c_str(), resolve(path).c_str()) != 0)
    status = cannotWrite(path, describe(errno));
  if (!status.ok())
    unlink(aside.c_str());
  return status;
}

} // namespace dualpipe::launcher
