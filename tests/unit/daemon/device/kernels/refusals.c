/* The calls of refusals.txt: the check takes each, and refuses each of the changes below it in the words that are
 * there. Calls that take long have progress, and can be cancelled. Every kernel has a call. */
#include <stdio.h>

#include "tests/support/test.h"
#include "tests/unit/daemon/device/kernels/calls.h"

enum { LINE_BYTES = 512 };
#define REFUSALS_FILE "tests/unit/daemon/device/kernels/refusals.txt"

/* ---- words ---- */

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* A role's operand; `name` is "in", "in.c=3", "in0", … NULL where the kernel has no such role. */
static struct kernel_operand *operand_of(struct calls *c, const char *name, unsigned *role, unsigned *index)
{
	size_t length = strcspn(name, ".=@");
	for (unsigned pass = 0; pass < 2; pass++) { /* the whole name is a role, or a role with a number */
		for (*role = 0; *role < c->call.n_roles; ++*role)
			if (strlen(c->names[*role]) == length && !strncmp(c->names[*role], name, length)) {
				return &c->operands[*role][*index];
			}
		*index = (unsigned)strtoul(name + length - 1, NULL, 10);
		length--;
	}
	return NULL;
}

/* "fx8", "fx8.7[1,2,3,4]": what is there changes. */
static void read_operand(struct kernel_operand *operand, const char *text)
{
	char dtype[16] = "";
	size_t length = strcspn(text, ".[");
	long long f = operand->frac_bits, n, ch, h, w;
	snprintf(dtype, sizeof(dtype), "%.*s", (int)length, text);
	operand->dtype = npumem_dtype_parse(dtype);
	ck_assert_msg(operand->dtype > 0, "there is no type %s", dtype);
	if (text[length] == '.')
		f = strtoll(text + length + 1, NULL, 10);
	operand->frac_bits = f;
	const char *shape = strchr(text, '[');
	if (!shape)
		return;
	ck_assert_int_eq(sscanf(shape, "[%lld,%lld,%lld,%lld]", &n, &ch, &h, &w), 4);
	operand->shape = (struct npumem_dims){n, ch, h, w};
}

static int64_t number_of(const struct npumem_param_row *row, const char *text, size_t length)
{
	int64_t number = 1;
	for (const char *word = row->choices; *word && *text != '#'; number++) {
		size_t n = strcspn(word, " ");
		if (n == length && !strncmp(word, text, n))
			return number;
		word += n + strspn(word + n, " ");
	}
	return strtoll(text + (*text == '#'), NULL, 10);
}

static void read_param(struct calls *c, const char *name, const char *values)
{
	const struct npumem_param_row *row = npumem_param_by_name(name);
	ck_assert_msg(row, "there is no parameter or role %s", name);
	int64_t v[NPUMEM_PARAM_VALUES_MAX] = {0};
	unsigned n = 0;
	for (const char *at = values; *at && n < NPUMEM_PARAM_VALUES_MAX; at += strspn(at, ",")) {
		size_t length = strcspn(at, ",");
		v[n++] = number_of(row, at, length);
		at += length;
	}
	calls_param(c, row->number, n, v[0], v[1], v[2], v[3]);
	if (row->number == NPUMEM_PARAM_ROUNDING)
		c->call.rounding = (enum npumem_rounding)v[0];
}

/* ---- a call, and a change of it ---- */

static void add_word(struct calls *c, const char *word)
{
	unsigned role, index = 0;
	struct kernel_operand operand = {0};
	const char *value = strchr(word, '=') + 1;
	if (operand_of(c, word, &role, &index)) {
		read_operand(&operand, value);
		calls_add(c, c->names[role], operand.dtype, operand.frac_bits, operand.shape.n, operand.shape.c,
			  operand.shape.h, operand.shape.w);
		return;
	}
	char name[NPUMEM_FIELD_KEY_BYTES];
	snprintf(name, sizeof(name), "%.*s", (int)(value - word - 1), word);
	read_param(c, name, value);
}

static void change(struct calls *c, const char *word)
{
	unsigned role, index = 0;
	bool without = *word == '-';
	word += without;
	const char *value = strchr(word, '=');
	struct kernel_operand *operand = operand_of(c, word, &role, &index);
	char name[NPUMEM_FIELD_KEY_BYTES];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, ".=@"), word);
	if (operand && without)
		c->roles[role].n--;
	else if (operand && strchr(word, '@'))
		((float *)operand->data)[strtoll(strchr(word, '@') + 1, NULL, 10)] = strtof(value + 1, NULL);
	else if (operand && word[strcspn(word, ".=")] == '.')
		calls_set(operand, value[-1], strtoll(value + 1, NULL, 10));
	else if (operand)
		read_operand(operand, value + 1);
	else
		read_param(c, name, without ? "" : value + 1);
}

/* A copy of the roles and parameters, put back after a change. */
static void check_change(struct calls *c, char *line)
{
	struct calls *kept = malloc(sizeof(*kept));
	char *text = strstr(line, " | "), *place;
	ck_assert_msg(kept && text, "no words: %s", line);
	*text = 0;
	text += 3;
	text[strcspn(text, "\n")] = 0;
	*kept = *c;
	for (char *word = strtok_r(line, " \t", &place); word; word = strtok_r(NULL, " \t", &place))
		change(c, word);
	calls_refused(c, text);
	*c = *kept;
	free(kept);
	npumem_error_clear(&c->error);
	ck_assert_int_eq(c->kernel->check(&c->call, &c->error), 0);
}

static void set_up(struct calls *c, const char *kernel, char *words)
{
	char *place;
	const struct npumem_kernel_row *row = npumem_kernel_by_name(kernel);
	ck_assert_msg(row, "there is no kernel %s", kernel);
	calls_init(c, row->number);
	for (char *word = strtok_r(words, " \n", &place); word && *word != '!';
	     word = strtok_r(NULL, " \n", &place))
		add_word(c, word);
	npumem_error_clear(&c->error);
	ck_assert_msg(c->kernel->check(&c->call, &c->error) == 0, "refused: %s", c->error.message);
}

/* A cancelled run ends within `step` elements of out. */
static void check_step(struct calls *c, int64_t step)
{
	struct kernel_progress progress = {.piece = 1, .cancelled = true};
	calls_progress(c);
	c->call.progress = &progress;
	calls_once(c);
	ck_assert_int_le(progress.done, step * KERNEL_PARTS);
	c->call.progress = NULL;
}

static void check_flags(struct calls *c, const char *flags)
{
	const char *progress = strstr(flags, "progress");
	ck_assert_msg(c->kernel->in_place == !!strstr(flags, "in_place"), "%s: in_place", c->call.row->name);
	if (strstr(flags, "all"))
		calls_break_all(c);
	if (progress && starts_with(progress, "progress="))
		check_step(c, strtoll(progress + strlen("progress="), NULL, 10));
	else if (progress)
		calls_progress(c);
}

/* One of the kernels that `names` lists, separated by commas; false where it has no `index`-th. */
static bool nth_name(const char *names, unsigned index, char *name, size_t bytes)
{
	for (; index > 0 && *names; index--)
		names += strcspn(names, ","), names += *names == ',';
	snprintf(name, bytes, "%.*s", (int)strcspn(names, ","), names);
	return *name;
}

static bool lists(const char *names, const char *kernel)
{
	char name[64];
	for (unsigned i = 0; nth_name(names, i, name, sizeof(name)); i++)
		if (!strcmp(name, kernel))
			return true;
	return false;
}

TEST(refusals, .to = (int)npumem_n_kernel_rows)
{
	const char *kernel = npumem_kernel_rows[_i].name;
	char line[LINE_BYTES];
	unsigned n_calls = 0, n_changes = 0;
	struct calls c;
	bool mine = false;
	FILE *file = fopen(REFUSALS_FILE, "r");
	ck_assert_msg(file, "%s is not there", REFUSALS_FILE);
	while (fgets(line, sizeof(line), file)) {
		if (*line == '\t' && mine) {
			check_change(&c, line);
			n_changes++;
		}
		if (*line == '\t' || *line == '#' || *line == '\n')
			continue;
		if (mine)
			calls_free(&c);
		char *words = line + strcspn(line, " "), flags[LINE_BYTES] = "";
		*words++ = 0;
		if (strchr(words, '!'))
			snprintf(flags, sizeof(flags), "%s", strchr(words, '!'));
		mine = lists(line, kernel);
		if (!mine)
			continue;
		set_up(&c, kernel, words);
		check_flags(&c, flags);
		n_calls++;
	}
	fclose(file);
	if (mine)
		calls_free(&c);
	ck_assert_msg(n_calls > 0 && n_changes > 2, "%s: %u calls, %u changes", kernel, n_calls, n_changes);
}
