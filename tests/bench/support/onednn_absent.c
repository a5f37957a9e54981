/* Where oneDNN is not there: nothing can be made. */
#include <stddef.h>

#include "tests/bench/support/onednn.h"

bool onednn_open(const char *isa)
{
	(void)isa;
	return false;
}

struct onednn *onednn_new(const struct call *call)
{
	(void)call;
	return NULL;
}

void onednn_free(struct onednn *onednn)
{
	(void)onednn;
}

const char *onednn_choice(const struct onednn *onednn)
{
	(void)onednn;
	return "";
}

void onednn_core(void *onednn)
{
	(void)onednn;
}

void onednn_full(void *onednn)
{
	(void)onednn;
}
