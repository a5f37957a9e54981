/* Time that passes at once: what waits for an instant is tested without waiting for it. */
#ifndef TESTS_CLIENT_SKIP_H
#define TESTS_CLIENT_SKIP_H

/* From here on the library's clock is so many milliseconds ahead of the system's, beside what was skipped before.
 * A timer of the system's that was set for an instant that is skipped comes when it would have come. */
void skip_ms(int ms);

#endif
