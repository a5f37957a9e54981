/* Roles and parameters by the rows of kernels.def. Does not check their number or their tensors: the daemon does.
 */
#include "client/ctl/core/kernels/roles.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/core/words/suggest.h"

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

int roles_kernel(const char *name, const struct npumem_kernel_row **row, struct npumem_error *error)
{
	char nearest[SUGGEST_TEXT_BYTES];
	struct suggest suggest;
	*row = npumem_kernel_by_name(name);
	if (*row)
		return 0;
	suggest_init(&suggest, name);
	for (unsigned i = 0; i < npumem_n_kernel_rows; i++)
		suggest_offer(&suggest, npumem_kernel_rows[i].name);
	return npumem_error_set(error, NPUMEM_INVALID, "there is no kernel \"%.60s\"%s", name,
				suggest_text(&suggest, nearest));
}

static int no_such_word(const struct npumem_kernel_row *row, const char *key, struct npumem_error *error)
{
	char roles[160], params[160], nearest[SUGGEST_TEXT_BYTES];
	struct suggest suggest;
	suggest_init(&suggest, key);
	suggest_offer_list(&suggest, row->roles);
	suggest_offer_list(&suggest, row->parameters);
	suggest_offer(&suggest, "rounding");
	return npumem_error_set(error, NPUMEM_INVALID,
				"%s has no \"%.40s\"; tensors: %s; parameters: %s%srounding%s", row->name, key,
				list_text(row->roles, roles, sizeof(roles)),
				list_text(row->parameters, params, sizeof(params)), *row->parameters ? ", " : "",
				suggest_text(&suggest, nearest));
}

int roles_word(const struct npumem_kernel_row *row, const char *text, struct roles_word *word,
	       struct npumem_error *error)
{
	char key[SUGGEST_WORD_BYTES];
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
	snprintf(key, sizeof(key), "%.*s", (int)(length < sizeof(key) ? length : sizeof(key) - 1), text);
	return no_such_word(row, key, error);
}
