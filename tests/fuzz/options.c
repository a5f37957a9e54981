/* npumemd's command line: words between zeros. What is accepted is within its bounds. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/server/process/options.h"
#include "tests/fuzz/fuzz.h"

enum { WORDS_MAX = 40 };

/* They print, and end. */
static bool is_left_out(const char *word)
{
	return strncmp(word, "--h", 3) == 0 || strncmp(word, "--v", 3) == 0;
}

static void check(const struct options *options)
{
	struct npumem_error error = {.status = 0};

	if (npumem_geometry_check(&options->device.geometry, &error))
		fuzz_fail("a geometry is accepted that is none: %s", error.message);
	if ((options->fd < 0) != (options->socket[0] != 0) || !memchr(options->socket, 0, sizeof(options->socket)))
		fuzz_fail("a daemon of no socket, or of two");
	if (options->frame_seconds < 1 || options->drain_seconds < 1 || options->stop_seconds < 1 ||
	    options->resume_seconds < 1 || options->spin_us < 0 || options->mode < 0 || options->mode > 0777 ||
	    options->compact_percent < 1 || options->compact_percent > 100 || options->set_aside < 0 ||
	    options->set_aside > 1000)
		fuzz_fail("a number beyond its bounds is accepted");
	if (options->n_own_limits > OPTIONS_OWN_LIMITS_MAX)
		fuzz_fail("more limits than there is room for");
	for (unsigned i = 0; i < options->n_own_limits; i++)
		if (options->own_limits[i].key < 0 || options->own_limits[i].key >= LIMITS_N)
			fuzz_fail("a limit of nothing");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static struct options options;
	char error[OPTIONS_ERROR_BYTES] = "", *text = malloc(n + 1), *words[WORDS_MAX + 2] = {"npumemd"};
	int n_words = 1;

	memcpy(text, bytes, n);
	text[n] = 0;
	for (size_t at = 0; at < n && n_words <= WORDS_MAX; at += strlen(text + at) + 1)
		if (!is_left_out(text + at))
			words[n_words++] = text + at;
	optind = 0; /* glibc: begins anew */
	switch (options_parse(n_words, words, &options, error)) {
	case OPTIONS_RUN:
		check(&options);
		break;
	case OPTIONS_BAD:
		if (!error[0] || !memchr(error, 0, sizeof(error)) || strchr(error, '\n'))
			fuzz_fail("a command line is refused without one line");
		break;
	default:
		fuzz_fail("a command line that is neither run nor refused");
	}
	free(text);
	return 0;
}
