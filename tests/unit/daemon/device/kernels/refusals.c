/* The calls of refusals.txt: the check takes each, and refuses each of the changes below it in the words that are
 * there. Calls that take long have progress, and can be cancelled. Every kernel has a call. */
#include "tests/unit/daemon/device/kernels/words.h"

enum { LINE_BYTES = 512 };
#define REFUSALS_FILE "tests/unit/daemon/device/kernels/refusals.txt"

static void change(struct calls *c, const char *word)
{
	unsigned role, index = 0;
	bool without = *word == '-';
	word += without;
	const char *value = strchr(word, '=');
	struct kernel_operand *operand = words_operand(c, word, &role, &index);
	char name[NPUMEM_FIELD_KEY_BYTES];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, ".=@"), word);
	if (operand && without)
		c->roles[role].n--;
	else if (operand && strchr(word, '@'))
		((float *)operand->data)[strtoll(strchr(word, '@') + 1, NULL, 10)] = strtof(value + 1, NULL);
	else if (operand && word[strcspn(word, ".=")] == '.')
		calls_set(operand, value[-1], strtoll(value + 1, NULL, 10));
	else if (operand)
		words_read_operand(operand, value + 1);
	else
		words_read_param(c, name, without ? "" : value + 1);
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

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
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
		mine = words_list(line, kernel);
		if (!mine)
			continue;
		words_call(&c, kernel, words);
		check_flags(&c, flags);
		n_calls++;
	}
	fclose(file);
	if (mine)
		calls_free(&c);
	ck_assert_msg(n_calls > 0 && n_changes > 2, "%s: %u calls, %u changes", kernel, n_calls, n_changes);
}
