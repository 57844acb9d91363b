//===- JsonSyntax.h - what is wrong with a text that should be JSON ---------===//

#ifndef DUALPIPE_RUNTIME_PROFILE_JSONSYNTAX_H
#define DUALPIPE_RUNTIME_PROFILE_JSONSYNTAX_H

#include "dualpipe/Support/Status.h"

#include <string_view>

namespace dualpipe::runtime {

/// JSON in which no object has a name twice (of which nlohmann-json would keep the last without a
/// word), and no deeper than any of our files by far: what walks through it may recurse.
Status checkJsonSyntax(std::string_view text);

} // namespace dualpipe::runtime

#endif // DUALPIPE_RUNTIME_PROFILE_JSONSYNTAX_H
