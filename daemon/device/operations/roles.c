#include "daemon/device/operations/roles.h"

#include <assert.h>
#include <ctype.h>
#include <stdatomic.h>
#include <string.h>

static const char *const rows[] = {
#define KERNEL(name, NAME, number, roles, parameters, types, summary) [number] = roles,
#include <npumem/kernels.def>
#undef KERNEL
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

enum {
	TEXT_BYTES = 0
#define KERNEL(name, NAME, number, roles, parameters, types, summary) +sizeof(roles)
#include <npumem/kernels.def>
#undef KERNEL
};

/* Side by side, to be on few pages and in few cache lines. A role takes two characters of a text at least. */
static char names[TEXT_BYTES];
static struct role all[TEXT_BYTES / 2];
static struct roles parsed[N_ROWS];
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

void roles_prepare(void)
{
	int before = UNTOUCHED;
	if (atomic_compare_exchange_strong(&state, &before, BEGUN)) {
		struct ends ends = {all, names};
		for (int i = 0; i < N_ROWS; i++)
			if (rows[i])
				parse(rows[i], &parsed[i], &ends);
		state = DONE;
	}
	while (state != DONE)
		;
}

const struct roles *roles_of(int kernel)
{
	static const struct roles none;
	return kernel >= 0 && kernel < N_ROWS ? &parsed[kernel] : &none;
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

int roles_find(const struct roles *roles, const char *operand, unsigned *number)
{
	*number = 0;
	for (unsigned i = 0; i < roles->n; i++) {
		const struct role *role = &roles->all[i];
		if (strncmp(operand, role->name, role->name_bytes))
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
