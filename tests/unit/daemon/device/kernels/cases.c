/* Every kernel on the cases that cases.py makes: random ones and those of cases.txt, with the integers and
 * counters of npumem.reference. Each runs under every instruction set, dense, on lanes and in place. What the
 * reference refuses, the kernel's check refuses. */
#include <stdio.h>

#include "tests/unit/daemon/device/kernels/calls.h"

enum { CASES_MIN = 40, CASES_REFUSED_MIN = 1, WORD_BYTES = 64 };

static char *text; /* of the file, read before the tests' processes are made */

struct one {
	struct calls c;
	int64_t *expected[CALLS_ROLES_MAX];
	struct kernel_counts counts;
	bool refused;
};

static void read_all(void)
{
	FILE *file = fopen(NPUMEM_KERNEL_CASES, "r");
	ck_assert_msg(file, "%s is not there", NPUMEM_KERNEL_CASES);
	fseek(file, 0, SEEK_END);
	size_t bytes = (size_t)ftell(file);
	rewind(file);
	text = calloc(1, bytes + 1);
	ck_assert(text && fread(text, 1, bytes, file) == bytes);
	fclose(file);
}

static void free_all(void)
{
	free(text);
	text = NULL;
}

static const char *read_word(const char *at, char word[WORD_BYTES])
{
	at += strspn(at, " \n");
	size_t length = strcspn(at, " \n");
	ck_assert_uint_lt(length, WORD_BYTES);
	memcpy(word, at, length);
	word[length] = 0;
	return at + length;
}

static const char *read_number(const char *at, int64_t *number)
{
	char *end;
	*number = strtoll(at, &end, 10);
	ck_assert_ptr_ne(end, at);
	return end;
}

static const char *read_param(const char *at, struct calls *c)
{
	int64_t number, n, v[4];
	at = read_number(read_number(at, &number), &n);
	for (unsigned i = 0; i < 4; i++)
		at = read_number(at, &v[i]);
	calls_param(c, (int)number, (unsigned)n, v[0], v[1], v[2], v[3]);
	return at;
}

static unsigned role_of(const struct calls *c, const char *name)
{
	unsigned role = 0;
	while (role < c->call.n_roles && strcmp(c->names[role], name) != 0)
		role++;
	ck_assert_msg(role < c->call.n_roles, "%s has no role %s", c->call.row->name, name);
	return role;
}

static const char *read_operand(const char *at, struct one *one)
{
	char role[WORD_BYTES], dtype[WORD_BYTES];
	int64_t frac_bits, shape[4];
	at = read_number(read_word(read_word(at, role), dtype), &frac_bits);
	for (unsigned i = 0; i < 4; i++)
		at = read_number(at, &shape[i]);
	struct calls *c = &one->c;
	calls_add(c, role, npumem_dtype_parse(dtype), frac_bits, shape[0], shape[1], shape[2], shape[3]);
	unsigned r = role_of(c, role);
	struct kernel_operand *operand = &c->operands[r][c->roles[r].n - 1];
	int64_t n = shape[0] * shape[1] * shape[2] * shape[3];
	if (at[strspn(at, " ")] == '\n')
		return at;
	int64_t *values = malloc((size_t)n * sizeof(*values));
	for (int64_t i = 0; i < n; i++)
		at = read_number(at, &values[i]);
	for (int64_t i = 0; i < n && !c->is_output[r]; i++)
		calls_put_in(operand, i, values[i]);
	if (c->is_output[r])
		one->expected[r] = values;
	else
		free(values);
	return at;
}

/* Reads the case at `at`. NULL where the kernel has no more. */
static const char *read_case(const char *at, int kernel, struct one *one)
{
	char word[WORD_BYTES];
	int64_t rounding, n_params, n_operands;
	memset(one, 0, sizeof(*one));
	at = read_word(at, word);
	one->refused = !strcmp(word, "refused");
	if (!one->refused && strcmp(word, "run") != 0)
		return NULL;
	calls_init(&one->c, kernel);
	at = read_number(read_number(read_number(at, &rounding), &n_params), &n_operands);
	one->c.call.rounding = (enum npumem_rounding)rounding;
	for (int64_t i = 0; i < n_params; i++)
		at = read_param(at, &one->c);
	for (int64_t i = 0; i < n_operands; i++)
		at = read_operand(at, one);
	if (one->refused)
		return at;
	int64_t counts[4];
	for (unsigned i = 0; i < 4; i++)
		at = read_number(at, &counts[i]);
	one->counts = (struct kernel_counts){
		.saturated = counts[0], .wrapped = counts[1], .divided_by_zero = counts[2], .macs = counts[3]};
	return at;
}

static void compare(const struct one *one, unsigned number)
{
	const struct calls *c = &one->c;
	for (unsigned r = 0; r < c->call.n_roles; r++) {
		const struct kernel_operand *out = &c->operands[r][0];
		int64_t n = one->expected[r] ? (int64_t)(calls_bytes(out) / npumem_dtype_bytes(out->dtype)) : 0;
		for (int64_t i = 0; i < n; i++)
			if (calls_get(c, r, i) != one->expected[r][i])
				ck_abort_msg("%s, case %u: %s[%lld] is %lld, not %lld", c->call.row->name, number,
					     c->names[r], (long long)i, (long long)calls_get(c, r, i),
					     (long long)one->expected[r][i]);
	}
	const struct kernel_counts *is = &c->call.counts, *want = &one->counts;
	ck_assert_msg(is->saturated == want->saturated && is->wrapped == want->wrapped &&
			      is->divided_by_zero == want->divided_by_zero && is->macs == want->macs,
		      "%s, case %u: other counts: saturated %lld, not %lld", c->call.row->name, number,
		      (long long)is->saturated, (long long)want->saturated);
}

static void free_one(struct one *one)
{
	calls_free(&one->c);
	for (unsigned r = 0; r < CALLS_ROLES_MAX; r++)
		free(one->expected[r]);
}

TEST(cases, .to = (int)npumem_n_kernel_rows)
{
	const struct npumem_kernel_row *row = &npumem_kernel_rows[_i];
	char heading[WORD_BYTES + 16];
	snprintf(heading, sizeof(heading), "kernel %s\n", row->name);
	const char *at = strstr(text, heading);
	ck_assert_msg(at, "%s has no cases", row->name);
	at += strlen(heading);
	unsigned n_run = 0, n_refused = 0;
	struct one one;
	for (; (at = read_case(at, row->number, &one)); free_one(&one)) {
		if (one.refused) {
			calls_refused(&one.c, row->name);
			n_refused++;
			continue;
		}
		calls_run(&one.c);
		compare(&one, n_run++);
	}
	ck_assert_msg(n_run >= CASES_MIN && n_refused >= CASES_REFUSED_MIN, "%s: %u cases, %u refused", row->name,
		      n_run, n_refused);
}

FIXTURE(read_all, free_all, .is_once = true)
