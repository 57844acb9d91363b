/* A shared object that is no plug-in. */
int dualpipe_test_nothing(void) { return 0; }
