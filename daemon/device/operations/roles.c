#include "daemon/device/operations/roles.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

unsigned roles_parse(const char *text, struct role roles[ROLES_MAX])
{
	unsigned n = 0;
	while (*text) {
		struct role *role = &roles[n++];
		assert(n <= ROLES_MAX);
		memset(role, 0, sizeof(*role));
		if (*text == '>') {
			role->output = true;
			text++;
		}
		size_t length = strcspn(text, "?* ");
		assert(length > 0 && length < sizeof(role->name));
		memcpy(role->name, text, length);
		for (text += length; *text == '?' || *text == '*'; text++) {
			role->optional |= *text == '?';
			role->numbered |= *text == '*';
		}
		text += strspn(text, " ");
	}
	return n;
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

int roles_find(const struct role *roles, unsigned n, const char *operand, unsigned *number)
{
	*number = 0;
	for (unsigned i = 0; i < n; i++) {
		size_t length = strlen(roles[i].name);
		if (strncmp(operand, roles[i].name, length))
			continue;
		if (!roles[i].numbered && operand[length] == '\0')
			return (int)i;
		int at = roles[i].numbered ? parse_number(operand + length) : -1;
		if (at >= 0) {
			*number = (unsigned)at;
			return (int)i;
		}
	}
	return -1;
}
