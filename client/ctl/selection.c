/* Names against the daemon's list. The tensors are the connection's. */
#include "client/ctl/ctl.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/core/memory.h"

bool selection_is_pattern(const char *word)
{
	return strpbrk(word, "*?[") != NULL;
}

/* A tensor of the caller's uid matches by NAME or UID:NAME, one of another uid by UID:NAME, an unnamed one never.
 */
static bool fits(const struct npumem_tensor *tensor, uint32_t uid, const char *word)
{
	char full[NPUMEM_NAME_BYTES_MAX + 16];
	if (!tensor->name[0])
		return false;
	snprintf(full, sizeof(full), "%" PRIu32 ":%s", tensor->uid, tensor->name);
	return !fnmatch(word, full, 0) || (tensor->uid == uid && !fnmatch(word, tensor->name, 0));
}

static bool fits_any(const struct npumem_tensor *tensor, uint32_t uid, const char *const *words, unsigned n_words)
{
	for (unsigned i = 0; i < n_words; i++)
		if (fits(tensor, uid, words[i]))
			return true;
	return !n_words;
}

/* A word that finds nothing is a slip. */
static int check_words(struct ctl *ctl, const struct npumem_tensors *tensors, uint32_t uid,
		       const char *const *words, unsigned n_words)
{
	const struct npumem_tensor *ignored;
	for (unsigned i = 0; i < n_words; i++) {
		unsigned k = 0;
		while (k < tensors->n && !fits(tensors->list[k], uid, words[i]))
			k++;
		if (k < tensors->n)
			continue;
		if (!selection_is_pattern(words[i]))
			return ctl_open(ctl, words[i], &ignored);
		npumem_error_set(&ctl->error, NPUMEM_NOT_FOUND, "no tensor's name fits \"%.80s\"", words[i]);
		return CTL_FAILED;
	}
	return CTL_OK;
}

int selection_all(struct ctl *ctl, uint32_t uid, const char *const *words, unsigned n_words,
		  struct selection *selection)
{
	const struct npumem_tensors *tensors;
	*selection = (struct selection){.n = 0};
	int code = ctl_connect(ctl);
	if (!code && npumem_list(ctl->npumem, &tensors, &ctl->error))
		code = CTL_FAILED;
	if (!code)
		code = check_words(ctl, tensors, uid, words, n_words);
	if (code)
		return code;
	selection->list = memory_new(tensors->n, sizeof(*selection->list));
	for (unsigned i = 0; i < tensors->n; i++)
		if (fits_any(tensors->list[i], uid, words, n_words))
			selection->list[selection->n++] = tensors->list[i];
	return CTL_OK;
}
