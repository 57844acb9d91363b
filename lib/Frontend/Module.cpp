//===- Module.cpp - loads a file with its imports --------------------------===//
//
// Files are loaded breadth first: the main file, then what it imports, then what
// those import. A file that is reached twice, even under two names, is loaded
// once; a circle of imports is an error.
//
//===----------------------------------------------------------------------===//

#include "ModuleImpl.h"
#include "Parser.h"
#include "Printer.h"
#include "Resolver.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/VirtualFileSystem.h"

#include <map>

using namespace dualpipe;
using namespace dualpipe::frontend;
using llvm::MemoryBufferRef;
using llvm::StringRef;
using llvm::Twine;

Module::Module(std::unique_ptr<ModuleImpl> impl) : impl(std::move(impl)) {}
Module::~Module() = default;
Module::Module(Module &&) = default;
Module &Module::operator=(Module &&) = default;

bool Module::isValid() const { return impl->valid; }
llvm::ArrayRef<std::string> Module::getFiles() const { return impl->files; }

std::vector<std::string> Module::getScheduleNames() const {
  std::vector<std::string> names;
  if (!impl->trees.empty())
    for (const ScheduleDecl *schedule : impl->trees.front().schedules)
      names.push_back(schedule->name.name.str());
  return names;
}

void Module::print(llvm::raw_ostream &os) const {
  if (!impl->trees.empty())
    printTree(impl->trees.front(), os);
}

namespace {

class Loader {
public:
  Loader(llvm::SourceMgr &sources, const Limits &limits, DiagnosticSink &sink)
      : sources(sources), limits(limits), sink(sink), module(std::make_unique<ModuleImpl>()),
        fileSystem(sources.getVirtualFileSystem()), errorsBefore(sink.numErrors()) {
    if (!fileSystem)
      fileSystem = llvm::vfs::getRealFileSystem();
  }

  Module load(unsigned buffer);
  Module loadPath(StringRef path);

private:
  std::optional<unsigned> open(StringRef path, SourceLoc loc);
  bool checkText(StringRef text, uint32_t file);
  void addFile(unsigned buffer);
  void loadImports(uint32_t file);
  std::optional<uint32_t> loadImport(const ImportDecl &import);
  void rejectCircles();
  Module finish();
  void error(SourceLoc loc, std::string message) { sink.error(loc, std::move(message)); }

  llvm::SourceMgr &sources;
  const Limits &limits;
  DiagnosticSink &sink;
  std::unique_ptr<ModuleImpl> module;
  llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> fileSystem;
  size_t errorsBefore;
  std::map<llvm::sys::fs::UniqueID, uint32_t> loaded;
};

} // namespace

/// Loads a file into the source manager. Only regular files: a device may never end.
std::optional<unsigned> Loader::open(StringRef path, SourceLoc loc) {
  llvm::ErrorOr<llvm::vfs::Status> status = fileSystem->status(path);
  if (!status) {
    error(loc, ("cannot read '" + path + "': " + status.getError().message()).str());
    return std::nullopt;
  }
  if (!status->isRegularFile()) {
    error(loc, ("cannot read '" + path + "': it is not a regular file").str());
    return std::nullopt;
  }
  if (status->getSize() > limits.maxFileBytes) {
    error(loc, ("cannot read '" + path + "': it has " + Twine(status->getSize()) +
                " bytes, more than the limit of " + Twine(limits.maxFileBytes))
                   .str());
    return std::nullopt;
  }
  auto text = fileSystem->getBufferForFile(path);
  if (!text) {
    error(loc, ("cannot read '" + path + "': " + text.getError().message()).str());
    return std::nullopt;
  }
  loaded.try_emplace(status->getUniqueID(), uint32_t(module->files.size()));
  return sources.AddNewSourceBuffer(std::move(*text), llvm::SMLoc());
}

/// The place of the byte `offset` of `text`.
static SourceLoc locate(StringRef text, size_t offset, uint32_t file) {
  StringRef before = text.take_front(offset);
  size_t lineStart = before.rfind('\n');
  lineStart = lineStart == StringRef::npos ? 0 : lineStart + 1;
  return {file, uint32_t(before.count('\n') + 1), uint32_t(offset - lineStart + 1)};
}

/// Bytes that are not text would be carried into messages and programs.
bool Loader::checkText(StringRef text, uint32_t file) {
  if (text.size() > limits.maxFileBytes) {
    error({file, 1, 1}, ("the text has " + Twine(text.size()) + " bytes, more than the limit of " +
                         Twine(limits.maxFileBytes))
                            .str());
    return false;
  }
  if (size_t zero = text.find('\0'); zero != StringRef::npos) {
    error(locate(text, zero, file), "byte 0 in the text; is this a binary file?");
    return false;
  }
  const auto *cur = reinterpret_cast<const llvm::UTF8 *>(text.begin());
  const auto *end = reinterpret_cast<const llvm::UTF8 *>(text.end());
  if (llvm::isLegalUTF8String(&cur, end))
    return true;
  size_t offset = reinterpret_cast<const char *>(cur) - text.begin();
  error(locate(text, offset, file), "the text is not valid UTF-8");
  return false;
}

void Loader::addFile(unsigned buffer) {
  const llvm::MemoryBuffer *memory = sources.getMemoryBuffer(buffer);
  uint32_t file = module->files.size();
  module->files.push_back(memory->getBufferIdentifier().str());
  FileDecl &tree = module->trees.emplace_back();
  StringRef text = memory->getBuffer();
  if (!checkText(text, file))
    return;
  text.consume_front("\xEF\xBB\xBF");
  Parser(module->arena, text, file, limits, sink).parseFile(tree);
}

std::optional<uint32_t> Loader::loadImport(const ImportDecl &import) {
  llvm::SmallString<128> path(import.path);
  if (!llvm::sys::path::is_absolute(path)) {
    path = llvm::sys::path::parent_path(module->files[import.loc.file]);
    llvm::sys::path::append(path, import.path);
  }
  if (llvm::ErrorOr<llvm::vfs::Status> status = fileSystem->status(path)) {
    auto known = loaded.find(status->getUniqueID());
    if (known != loaded.end())
      return known->second;
  }
  std::optional<unsigned> buffer = open(path, import.loc);
  if (!buffer)
    return std::nullopt;
  addFile(*buffer);
  return uint32_t(module->files.size() - 1);
}

void Loader::loadImports(uint32_t file) {
  for (ImportDecl &import : module->trees[file].imports)
    if (std::optional<uint32_t> index = loadImport(import))
      import.file = *index;
}

Module Loader::load(unsigned buffer) {
  // So that a circle of imports finds its way back to the main file.
  StringRef name = sources.getMemoryBuffer(buffer)->getBufferIdentifier();
  if (llvm::ErrorOr<llvm::vfs::Status> status = fileSystem->status(name))
    loaded.try_emplace(status->getUniqueID(), 0);
  addFile(buffer);
  return finish();
}

Module Loader::loadPath(StringRef path) {
  if (std::optional<unsigned> buffer = open(path, {})) {
    addFile(*buffer);
    return finish();
  }
  return Module(std::move(module));
}

/// Follows imports depth first. Of each circle the import that closes it is reported.
void Loader::rejectCircles() {
  enum class State : uint8_t { New, Open, Done };
  struct Visit {
    uint32_t file;
    size_t nextImport;
  };
  std::vector<State> states(module->trees.size(), State::New);
  std::vector<Visit> path{{0, 0}};
  while (!path.empty()) {
    auto &[file, next] = path.back();
    states[file] = State::Open;
    llvm::ArrayRef<ImportDecl> imports = module->trees[file].imports;
    if (next == imports.size()) {
      states[file] = State::Done;
      path.pop_back();
      continue;
    }
    const ImportDecl &import = imports[next++];
    if (states[import.file] == State::New) {
      path.push_back({import.file, 0});
      continue;
    }
    if (states[import.file] == State::Done)
      continue;
    auto begin = llvm::find_if(path, [&](const Visit &v) { return v.file == import.file; });
    std::string circle;
    for (const Visit &visit : llvm::make_range(begin, path.end()))
      circle += "'" + module->files[visit.file] + "' imports ";
    error(import.loc, "imports form a circle: " + circle + "'" + module->files[import.file] + "'");
  }
}

/// Names are resolved only where the text is sound: a declaration that could not
/// be parsed would make every use of it an error.
Module Loader::finish() {
  for (uint32_t file = 0; file < module->trees.size(); ++file)
    loadImports(file);
  // An import that could not be read has no file.
  if (sink.numErrors() == errorsBefore && !module->trees.empty())
    rejectCircles();
  if (sink.numErrors() == errorsBefore)
    for (FileDecl &tree : module->trees)
      Resolver(*module, limits, sink).resolveFile(tree);
  module->valid = sink.numErrors() == errorsBefore;
  return Module(std::move(module));
}

Module frontend::parse(llvm::SourceMgr &sources, unsigned buffer, DiagnosticSink &sink,
                       const Limits &limits) {
  return Loader(sources, limits, sink).load(buffer);
}

Module frontend::parseFile(llvm::SourceMgr &sources, StringRef path, DiagnosticSink &sink,
                           const Limits &limits) {
  return Loader(sources, limits, sink).loadPath(path);
}
