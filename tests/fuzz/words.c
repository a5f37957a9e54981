/* npumemctl's words, whatever is typed: a line split as a shell does, options, numbers, specs, slices, questions,
 * roles and parameters. A spec that is accepted has a place whose bytes add up, and elements within it. */
#include <stdlib.h>
#include <string.h>

#include <npumem/numeric.h>

#include "client/ctl/core/arrays/slice.h"
#include "client/ctl/core/kernels/kernels.h"
#include "client/ctl/core/words/words.h"
#include "tests/fuzz/fuzz.h"

enum { WORDS_MAX = 40 };

static const struct option spec_options[] = {SPEC_OPTIONS, {NULL, NULL, NULL, false}};
static const struct option question_options[] = {QUESTION_OPTIONS, {NULL, NULL, NULL, false}};

static bool is_foreign(const char *word)
{
	return strchr(word, ' ') != NULL;
}

static void check_refused(int status, const struct npumem_error *error)
{
	if (status && (!error->message[0] || error->status != status))
		fuzz_fail("refused with %d and without a reason", status);
}

/* The corners of its shape lie on NPUs that there are, and in its footprint. */
static void check_corners(const struct npumem_geometry *geometry, const struct npumem_place *place)
{
	for (unsigned i = 0; i < 16; i++) {
		int64_t npu, offset, w = place->layout == NPUMEM_MATRIX ? 0 : place->shape.w - 1;

		npumem_place_locate(geometry, place, i & 1 ? place->shape.n - 1 : 0,
				    i & 2 ? place->shape.c - 1 : 0, i & 4 ? place->shape.h - 1 : 0, i & 8 ? w : 0,
				    &npu, &offset);
		if (npu < 0 || npu >= geometry->n_npus || offset < 0 || offset >= place->bytes_per_npu)
			fuzz_fail("an element beyond its tensor");
	}
}

static void plan(const struct npumem_spec *spec)
{
	struct npumem_error error = {.status = 0};
	struct npumem_geometry geometry;
	struct npumem_place place;
	const struct npumem_blocks *blocks = &place.blocks;
	int status;

	npumem_geometry_default(&geometry);
	status = npumem_place_resolve(&geometry, spec, &place, &error);
	check_refused(status, &error);
	if (status)
		return;
	if (blocks->data < 0 || blocks->dummy < 0 || blocks->padding < 0 || blocks->empty < 0 ||
	    blocks->data + blocks->dummy + blocks->padding + blocks->empty !=
		    geometry.n_npus * place.bytes_per_npu)
		fuzz_fail("a place whose bytes do not add up");
	if (place.bytes_per_npu < 1 || place.bytes_per_npu > geometry.npu_bytes || place.bytes_per_npu % 4)
		fuzz_fail("a place of %lld bytes", (long long)place.bytes_per_npu);
	check_corners(&geometry, &place);
}

static bool parse(struct args *args, const struct option *table, int n, char **words)
{
	static const char *room[WORDS_MAX + 2];
	struct npumem_error error = {.status = 0};

	*args = (struct args){.tables = {table}, .words = room};
	if (args_parse(args, n, words, 0, false, is_foreign, &error) >= 0)
		return true;
	if (!error.message[0])
		fuzz_fail("options are refused without a reason");
	return false;
}

static void read_spec(int n, char **words)
{
	struct npumem_error error = {.status = 0};
	struct npumem_spec spec;
	struct args args;
	int status;

	if (!parse(&args, spec_options, n, words))
		return;
	npumem_spec_init(&spec);
	status = spec_parse(&args, &spec, &error);
	check_refused(status, &error);
	if (!status)
		plan(&spec);
}

static void ask(int n, char **words)
{
	struct npumem_error error = {.status = 0};
	struct npumem_numeric_answer answer;
	struct question question;
	struct args args;
	int status;

	if (!parse(&args, question_options, n, words))
		return;
	status = question_parse(&args, &question, &error);
	check_refused(status, &error);
	if (!status)
		check_refused(npumem_numeric(&question.numeric, &answer, &error), &error);
}

static void read_word(const char *word)
{
	struct npumem_error error = {.status = 0};
	struct npumem_dims dims, from, to, shape = {4, 8, 3, 5};
	struct npumem_param param;
	struct slice slice;
	int64_t value, list[8];
	double real;
	unsigned n;
	const char *equals = strchr(word, '=');

	numbers_integer(word, &value);
	numbers_real(word, &real);
	check_refused(numbers_bytes("it", word, &value, &error), &error);
	check_refused(numbers_dims("it", word, &dims, &error), &error);
	check_refused(numbers_list("it", word, list, 8, &n, &error), &error);
	if (!slice_parse(word, &slice, &error))
		slice_resolve(&slice, &shape, &from, &to);
	if (equals && equals - word < NPUMEM_FIELD_KEY_BYTES) {
		char key[NPUMEM_FIELD_KEY_BYTES] = "";

		memcpy(key, word, (size_t)(equals - word));
		check_refused(npumem_param_parse(key, equals + 1, &param, &error), &error);
	}
}

static void read_roles(int n, char **words)
{
	struct npumem_error error = {.status = 0};
	const struct npumem_kernel_row *row;
	struct roles_word word;

	check_refused(roles_kernel(words[0], &row, &error), &error);
	for (int i = 1; i < n && !error.status; i++)
		check_refused(roles_word(row, words[i], &word, &error), &error);
}

static void read_command(unsigned n, char **words)
{
	for (unsigned i = 0; i < n; i++)
		read_word(words[i]);
	if (!n)
		return;
	read_spec((int)n, words);
	ask((int)n, words);
	read_roles((int)n, words);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	char *line = malloc(n + 1), *words[WORDS_MAX + 1], *next = line, *rest;

	memcpy(line, bytes, n);
	line[n] = 0;
	for (; next; next = rest) {
		struct npumem_error error = {.status = 0};
		unsigned n_words = 0;
		int status = words_split(next, words, WORDS_MAX, &n_words, &rest, &error);

		check_refused(status, &error);
		if (!status)
			read_command(n_words, words);
	}
	free(line);
	return 0;
}
