/* Numbers on the command line, read strictly: the whole text must be the number. */
#ifndef CTL_CORE_NUMBERS_H
#define CTL_CORE_NUMBERS_H

#include <npumem/layout.h>

/* A decimal or 0x integer. False where `text` is none, or one past 64 bits. */
bool numbers_integer(const char *text, int64_t *value);
/* The same, not negative. INVALID names `what`. */
int numbers_count(const char *what, const char *text, int64_t *value, struct npumem_error *error);
/* Bytes: a count, or as npumem_bytes_parse has it. */
int numbers_bytes(const char *what, const char *text, int64_t *value, struct npumem_error *error);
bool numbers_real(const char *text, double *value);
/* "1,2,3,4". */
int numbers_dims(const char *what, const char *text, struct npumem_dims *dims, struct npumem_error *error);
/* "0,3,63": at most `most` of them, each not negative. */
int numbers_list(const char *what, const char *text, int64_t *values, unsigned most, unsigned *n,
		 struct npumem_error *error);

#endif
