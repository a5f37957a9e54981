/* One number for all that requests change: tables, charges, and every byte and mark of the device. What only
 * counts requests, or keeps something that can be found again, is left out. */
#ifndef TESTS_FUZZ_DIGEST_H
#define TESTS_FUZZ_DIGEST_H

#include <stdint.h>

struct daemon;

uint64_t digest_of(struct daemon *daemon);

#endif
