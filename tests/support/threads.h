/* A process that may have no more threads, in a test's hands. */
#ifndef TESTS_SUPPORT_THREADS_H
#define TESTS_SUPPORT_THREADS_H

/* `n` more threads with options of their own are made, then none. */
void threads_fail_after(int n);
void threads_fail_never(void);

#endif
