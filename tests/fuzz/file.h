/* Bytes as a file, for what reads files by their names. */
#ifndef TESTS_FUZZ_FILE_H
#define TESTS_FUZZ_FILE_H

#include <stddef.h>
#include <stdint.h>

/* A path whose file has these bytes until the next call; it can be opened anew and again. */
const char *file_of(const uint8_t *bytes, size_t n);
/* The same under another name, which ends so: ".npz". */
const char *file_named(const uint8_t *bytes, size_t n, const char *end);

#endif
