/* The server's clock in a test's hands: of a moment of microseconds a busy machine may leave nothing. */
#ifndef TESTS_SUPPORT_HRTIME_H
#define TESTS_SUPPORT_HRTIME_H

#include <stdint.h>

/* uv_hrtime stays at what it is, for every thread, until it runs again. */
void hrtime_stop(void);
/* So much passes at once on a clock that is stopped. */
void hrtime_skip(uint64_t ns);
void hrtime_run(void);

#endif
