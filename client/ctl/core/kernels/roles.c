/* Roles and parameters by the rows of kernels.def. Does not check their number or their tensors: the daemon does.
 */
#include "client/ctl/core/kernels/kernels.h"

#include <stdio.h>
#include <string.h>

#include "client/ctl/core/words/words.h"

bool roles_has(const struct npumem_kernel_row *row, const char *role)
{
	return lists_has(row->roles, role);
}

bool roles_is_output(const struct npumem_kernel_row *row, const char *role)
{
	struct lists_word word;
	return lists_find(row->roles, role, false, &word) && word.output;
}

bool roles_has_param(const struct npumem_kernel_row *row, const char *name)
{
	return !strcmp(name, "rounding") || lists_has(row->parameters, name);
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
				lists_text(row->roles, ", ", "N", roles, sizeof(roles)),
				lists_text(row->parameters, ", ", "", params, sizeof(params)),
				*row->parameters ? ", " : "", suggest_text(&suggest, nearest));
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
