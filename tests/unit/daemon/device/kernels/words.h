/* A call of a kernel in words, as refusals.txt has it: ROLE=TYPE.FRAC_BITS[N,C,H,W]… PARAMETER=VALUES… */
#ifndef TESTS_DEVICE_KERNELS_WORDS_H
#define TESTS_DEVICE_KERNELS_WORDS_H

#include <stdio.h>

#include "tests/unit/daemon/device/kernels/calls.h"

/* A role's operand; `name` is "in", "in.c=3", "in0", … NULL where the kernel has no such role. */
static inline struct kernel_operand *words_operand(struct calls *c, const char *name, unsigned *role,
						   unsigned *index)
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
static inline void words_read_operand(struct kernel_operand *operand, const char *text)
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

static inline int64_t words_number(const struct npumem_param_row *row, const char *text, size_t length)
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

static inline void words_read_param(struct calls *c, const char *name, const char *values)
{
	const struct npumem_param_row *row = npumem_param_by_name(name);
	ck_assert_msg(row, "there is no parameter or role %s", name);
	int64_t v[NPUMEM_PARAM_VALUES_MAX] = {0};
	unsigned n = 0;
	for (const char *at = values; *at && n < NPUMEM_PARAM_VALUES_MAX; at += strspn(at, ",")) {
		size_t length = strcspn(at, ",");
		v[n++] = words_number(row, at, length);
		at += length;
	}
	calls_param(c, row->number, n, v[0], v[1], v[2], v[3]);
	if (row->number == NPUMEM_PARAM_ROUNDING)
		c->call.rounding = (enum npumem_rounding)v[0];
}

static inline void words_add(struct calls *c, const char *word)
{
	unsigned role, index = 0;
	struct kernel_operand operand = {0};
	const char *value = strchr(word, '=') + 1;
	if (words_operand(c, word, &role, &index)) {
		words_read_operand(&operand, value);
		calls_add(c, c->names[role], operand.dtype, operand.frac_bits, operand.shape.n, operand.shape.c,
			  operand.shape.h, operand.shape.w);
		return;
	}
	char name[NPUMEM_FIELD_KEY_BYTES];
	snprintf(name, sizeof(name), "%.*s", (int)(value - word - 1), word);
	words_read_param(c, name, value);
}

/* `words` is changed; what is behind a ! is none of the call. */
static inline void words_call(struct calls *c, const char *kernel, char *words)
{
	char *place;
	const struct npumem_kernel_row *row = npumem_kernel_by_name(kernel);
	ck_assert_msg(row, "there is no kernel %s", kernel);
	calls_init(c, row->number);
	for (char *word = strtok_r(words, " \n", &place); word && *word != '!';
	     word = strtok_r(NULL, " \n", &place))
		words_add(c, word);
	npumem_error_clear(&c->error);
	ck_assert_msg(c->kernel->check(&c->call, &c->error) == 0, "refused: %s", c->error.message);
}

/* One of the kernels that `names` lists, separated by commas; false where it has no `index`-th. */
static inline bool words_nth_name(const char *names, unsigned index, char *name, size_t bytes)
{
	for (; index > 0 && *names; index--)
		names += strcspn(names, ","), names += *names == ',';
	snprintf(name, bytes, "%.*s", (int)strcspn(names, ","), names);
	return *name;
}

static inline bool words_list(const char *names, const char *kernel)
{
	char name[64];
	for (unsigned i = 0; words_nth_name(names, i, name, sizeof(name)); i++)
		if (!strcmp(name, kernel))
			return true;
	return false;
}

#endif
