/* The rows of verdict.def. Owns nothing. */
#include "daemon/store/verdict.h"

#include <errno.h>

static const struct row {
	const char *name, *words;
	int status;
	bool is_set_aside;
} rows[STORE_VERDICTS] = {
#define VERDICT(NAME, name, status, is_set_aside, words) {#name, words, -status, is_set_aside},
#include "daemon/store/verdict.def"
#undef VERDICT
};

const char *verdict_name(enum store_verdict verdict)
{
	return rows[verdict].name;
}

const char *verdict_words(enum store_verdict verdict)
{
	return rows[verdict].words;
}

int verdict_status(enum store_verdict verdict)
{
	return rows[verdict].status;
}

bool verdict_is_set_aside(enum store_verdict verdict)
{
	return rows[verdict].is_set_aside;
}
