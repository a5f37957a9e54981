/* Random parallel groups through a submit, against a map of bytes. */
#ifndef TESTS_RANDOM_GROUPS_H
#define TESTS_RANDOM_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: what is wrong is in `wrong`. */
bool groups_run(uint64_t seed, char *wrong, size_t bytes);

#endif
