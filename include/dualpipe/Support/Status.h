//===- Status.h - failure by value, without LLVM and without exceptions ----===//
//
// The runtime and the plain-data half of the compiler report failure by value.
// A `Status` is either success or one message written for the user: lower case,
// no full stop. A `Result<T>` is a value or such a message.
//
//===----------------------------------------------------------------------===//

#ifndef DUALPIPE_SUPPORT_STATUS_H
#define DUALPIPE_SUPPORT_STATUS_H

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace dualpipe {

/// Success, or failure with a message for the user.
class [[nodiscard]] Status {
public:
  static Status success() { return Status(); }
  static Status failure(std::string message) {
    Status status;
    status.text.emplace(std::move(message));
    return status;
  }

  bool ok() const { return !text.has_value(); }
  explicit operator bool() const { return ok(); }
  /// The message of a failure. Must not be called on success.
  const std::string &message() const {
    assert(!ok() && "a successful status has no message");
    return *text;
  }

private:
  Status() = default;
  std::optional<std::string> text;
};

/// A value, or a failure with a message for the user.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : value(std::move(value)), status(Status::success()) {}
  Result(Status failure) : status(std::move(failure)) {
    assert(!status.ok() && "a result without a value must carry a failure");
  }

  bool ok() const { return status.ok(); }
  explicit operator bool() const { return ok(); }
  const std::string &message() const { return status.message(); }
  const Status &getStatus() const { return status; }

  T &operator*() { return *value; }
  const T &operator*() const { return *value; }
  T *operator->() { return &*value; }
  const T *operator->() const { return &*value; }

private:
  std::optional<T> value;
  Status status;
};

} // namespace dualpipe

#endif // DUALPIPE_SUPPORT_STATUS_H
