/* What every target defines and may use. A target is a function of bytes: run by libFuzzer (NPUMEM_FUZZ), or over
 * the corpus by replay.c. What it finds ends the process. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* Says what is wrong, and aborts. */
void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* A reader of a fuzzer's bytes: beyond the end all is 0. */
struct fuzz_bytes {
	const uint8_t *at, *end;
};
static inline uint8_t fuzz_byte(struct fuzz_bytes *bytes)
{
	return bytes->at < bytes->end ? *bytes->at++ : 0;
}
static inline size_t fuzz_left(const struct fuzz_bytes *bytes)
{
	return (size_t)(bytes->end - bytes->at);
}

#endif
