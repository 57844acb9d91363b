//===- SanitizerOptions.cpp - what test programs ask of the sanitizers ----------------------===//
//
// Linked into every test program of the tsan and asan builds.

/// Tests ask for more memory than there is, and what they test is told so instead of ended.
static constexpr char kSanitizerOptions[] = "allocator_may_return_null=1";

extern "C" {
const char *__asan_default_options();
const char *__tsan_default_options();
const char *__asan_default_options() { return kSanitizerOptions; }
const char *__tsan_default_options() { return kSanitizerOptions; }
}
