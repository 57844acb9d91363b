/* A library with the name of NCCL that is too old, or lacks everything but its version. */
int ncclGetVersion(int *version) {
  *version = FAULTY_VERSION;
  return 0;
}
