//===- Names.h - names that the language can spell -----------------------------===//

#ifndef DUALPIPE_LIB_TARGET_PIPE_NAMES_H
#define DUALPIPE_LIB_TARGET_PIPE_NAMES_H

#include <set>
#include <string>
#include <string_view>

namespace dualpipe::pipe_text {

/// Whether `text` is a name and no keyword.
bool isName(std::string_view text);

/// Names of one scope.
class Names {
public:
  /// A name that is not in use yet: `text`, or what comes nearest to it.
  std::string declare(std::string_view text);

private:
  std::set<std::string, std::less<>> used;
};

/// `text` as a string of the language without values in braces.
std::string quote(std::string_view text);

} // namespace dualpipe::pipe_text

#endif // DUALPIPE_LIB_TARGET_PIPE_NAMES_H
