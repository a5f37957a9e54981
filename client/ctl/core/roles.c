/* Roles and parameters by the rows of kernels.def. Does not check their number or their tensors: the daemon does.
 */
#include "client/ctl/core/roles.h"

#include <ctype.h>
#include <string.h>

/* One name of a space separated list against `text`; marks (> ? *) are those of kernels.def. */
static bool role_matches(const char *name, size_t length, const char *text)
{
	if (length && *name == '>') {
		name++;
		length--;
	}
	while (length && name[length - 1] == '?')
		length--;
	bool family = length && name[length - 1] == '*';
	if (family)
		length--;
	if (strncmp(name, text, length))
		return false;
	text += length;
	if (!family)
		return !*text;
	size_t digits = strspn(text, "0123456789");
	return digits >= 1 && digits <= 3 && !text[digits];
}

static const char *list_find(const char *list, const char *text)
{
	while (*list) {
		size_t length = strcspn(list, " ");
		if (length && role_matches(list, length, text))
			return list;
		list += length;
		list += strspn(list, " ");
	}
	return NULL;
}

bool roles_has(const struct npumem_kernel_row *row, const char *role)
{
	return list_find(row->roles, role) != NULL;
}

bool roles_is_output(const struct npumem_kernel_row *row, const char *role)
{
	const char *name = list_find(row->roles, role);
	return name && *name == '>';
}

bool roles_has_param(const struct npumem_kernel_row *row, const char *name)
{
	return !strcmp(name, "rounding") || list_find(row->parameters, name) != NULL;
}

/* A list of kernels.def for people: commas, without the marks. */
static const char *list_text(const char *list, char *text, size_t bytes)
{
	size_t n = 0;
	for (const char *at = list; *at && n + 3 < bytes; at++) {
		if (*at == ' ')
			text[n++] = ',';
		if (*at == '*')
			text[n++] = 'N';
		else if (*at != '>' && *at != '?')
			text[n++] = *at;
	}
	text[n] = 0;
	return text;
}

int roles_word(const struct npumem_kernel_row *row, const char *text, struct roles_word *word,
	       struct npumem_error *error)
{
	char roles[160], params[160];
	size_t length = strcspn(text, "=");
	if (!text[length] || !length || !text[length + 1])
		return npumem_error_set(error, NPUMEM_INVALID, "\"%.60s\" is neither role=NAME nor param=value",
					text);
	if (length < sizeof(word->key)) {
		memcpy(word->key, text, length);
		word->key[length] = 0;
		word->value = text + length + 1;
		word->is_role = roles_has(row, word->key);
		if (word->is_role || roles_has_param(row, word->key))
			return 0;
	}
	return npumem_error_set(error, NPUMEM_INVALID, "%s has no \"%.*s\"; tensors: %s; parameters: %s%srounding",
				row->name, (int)(length > 40 ? 40 : length), text,
				list_text(row->roles, roles, sizeof(roles)),
				list_text(row->parameters, params, sizeof(params)), *row->parameters ? ", " : "");
}
