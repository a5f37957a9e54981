#include "daemon/device/operations/roles.h"

#include <assert.h>
#include <ctype.h>
#include <stdatomic.h>
#include <string.h>

enum {
	N_ROWS = 0
#define KERNEL(name, NAME, number, roles, parameters, types, summary) +1
#include <npumem/kernels.def>
#undef KERNEL
	,
	TEXT_BYTES = 0
#define KERNEL(name, NAME, number, roles, parameters, types, summary) +sizeof(roles)
#include <npumem/kernels.def>
#undef KERNEL
	,
	NUMBERS = 128, /* more than a kernel's number can be */
};
#define KERNEL(name, NAME, number, roles, parameters, types, summary)                                             \
	_Static_assert((number) >= 0 && (number) < NUMBERS, #name ": the number does not fit the table");
#include <npumem/kernels.def>
#undef KERNEL

/* Side by side, to be on few pages and in few cache lines. A role takes two characters of a text at least. */
static char names[TEXT_BYTES];
static struct role all[TEXT_BYTES / 2];
static struct roles parsed[N_ROWS];
static uint8_t index_of[NUMBERS]; /* in `parsed`, from 1 */
enum { UNTOUCHED, BEGUN, DONE };
static _Atomic int state;

/* Where the next role and the next name go. */
struct ends {
	struct role *role;
	char *name;
};

static void parse(const char *text, struct roles *roles, struct ends *ends)
{
	roles->all = ends->role;
	while (*text) {
		struct role *role = ends->role++;
		roles->n++;
		assert(roles->n <= ROLES_MAX);
		if (*text == '>') {
			role->output = true;
			text++;
		}
		size_t length = strcspn(text, "?* ");
		assert(length > 0 && length < NPUMEM_FIELD_KEY_BYTES);
		role->name = memcpy(ends->name, text, length);
		role->name_bytes = (uint8_t)length;
		ends->name += length + 1;
		for (text += length; *text == '?' || *text == '*'; text++) {
			role->optional |= *text == '?';
			role->numbered |= *text == '*';
		}
		text += strspn(text, " ");
	}
}

static bool takes(const struct npumem_kernel_row *row, const struct npumem_param_row *param)
{
	size_t length = strlen(param->name);
	if (param->number == NPUMEM_PARAM_ROUNDING)
		return true;
	for (const char *at = row->parameters; (at = strstr(at, param->name)); at += length)
		if ((at == row->parameters || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
			return true;
	return false;
}

static void parse_params(struct roles *roles)
{
	for (unsigned i = 0; i < npumem_n_param_rows; i++) {
		const struct npumem_param_row *param = &npumem_param_rows[i];
		if (!takes(roles->row, param))
			continue;
		roles->params |= UINT64_C(1) << param->number;
		if (!*param->fallback)
			roles->needed_params |= UINT64_C(1) << param->number;
	}
}

void roles_prepare(void)
{
	int before = UNTOUCHED;
	if (atomic_compare_exchange_strong(&state, &before, BEGUN)) {
		struct ends ends = {all, names};
		for (unsigned i = 0; i < N_ROWS; i++) {
			parsed[i].row = &npumem_kernel_rows[i];
			index_of[parsed[i].row->number] = (uint8_t)(i + 1);
			parse(parsed[i].row->roles, &parsed[i], &ends);
			parse_params(&parsed[i]);
		}
		state = DONE;
	}
	while (state != DONE)
		;
}

const struct roles *roles_of(int kernel)
{
	static const struct roles none;
	return kernel >= 0 && kernel < NUMBERS && index_of[kernel] ? &parsed[index_of[kernel] - 1] : &none;
}

/* The number behind a family's name: "0" to "39", no leading zeros. -1 where it is none. */
static int parse_number(const char *text)
{
	int number = 0;
	size_t length = strlen(text);
	if (length == 0 || length > 2 || (length == 2 && text[0] == '0'))
		return -1;
	for (; *text; text++) {
		if (!isdigit((unsigned char)*text))
			return -1;
		number = number * 10 + (*text - '0');
	}
	return number < NPUMEM_OPERANDS_MAX ? number : -1;
}

/* Names are short and mostly differ in their first letter: no call is worth it. */
static bool begins_with(const char *operand, const struct role *role)
{
	unsigned i = 0;
	while (i < role->name_bytes && operand[i] == role->name[i])
		i++;
	return i == role->name_bytes;
}

int roles_find(const struct roles *roles, const char *operand, unsigned *number)
{
	*number = 0;
	for (unsigned i = 0; i < roles->n; i++) {
		const struct role *role = &roles->all[i];
		if (!begins_with(operand, role))
			continue;
		if (!role->numbered && operand[role->name_bytes] == '\0')
			return (int)i;
		int at = role->numbered ? parse_number(operand + role->name_bytes) : -1;
		if (at >= 0) {
			*number = (unsigned)at;
			return (int)i;
		}
	}
	return -1;
}
