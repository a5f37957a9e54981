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

static struct roles parsed[N_ROWS];
enum { UNTOUCHED, BEGUN, DONE };
static _Atomic int state;

static void parse(const char *text, struct roles *roles)
{
	while (*text) {
		struct role *role = &roles->all[roles->n++];
		assert(roles->n <= ROLES_MAX);
		if (*text == '>') {
			role->output = true;
			text++;
		}
		size_t length = strcspn(text, "?* ");
		assert(length > 0 && length < sizeof(role->name));
		memcpy(role->name, text, length);
		role->name_bytes = (unsigned)length;
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
		for (int i = 0; i < N_ROWS; i++)
			if (rows[i])
				parse(rows[i], &parsed[i]);
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
