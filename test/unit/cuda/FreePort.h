//===- FreePort.h - a port of this machine that nobody listens at ----------------===//

#ifndef DUALPIPE_TEST_UNIT_CUDA_FREEPORT_H
#define DUALPIPE_TEST_UNIT_CUDA_FREEPORT_H

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

namespace dualpipe::test {

/// Free when it is found; somebody else may take it before it is used.
inline uint16_t findPort() {
  const int number = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(number, reinterpret_cast<sockaddr *>(&address), size), 0);
  EXPECT_EQ(getsockname(number, reinterpret_cast<sockaddr *>(&address), &size), 0);
  close(number);
  return ntohs(address.sin_port);
}

} // namespace dualpipe::test

#endif // DUALPIPE_TEST_UNIT_CUDA_FREEPORT_H
