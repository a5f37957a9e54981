/* The verdicts on a state (verdict.def). */
#ifndef STORE_VERDICT_H
#define STORE_VERDICT_H

#include <stdbool.h>

enum store_verdict {
#define VERDICT(NAME, name, status, is_set_aside, words) STORE_##NAME,
#include "daemon/store/verdict.def"
#undef VERDICT
	STORE_VERDICTS
};

const char *verdict_name(enum store_verdict verdict);
const char *verdict_words(enum store_verdict verdict);
/* -errno of the row. */
int verdict_status(enum store_verdict verdict);
bool verdict_is_set_aside(enum store_verdict verdict);

#endif
