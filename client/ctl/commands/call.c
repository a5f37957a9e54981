/* call: any request of the wire, as JSON. What may be in it npumem.proto says, and the library checks. */
#include "client/ctl/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/words/words.h"

static const struct option call_options[] = {
	{"--list", NULL, "prints the methods", false},
	{NULL, NULL, NULL, false},
};

static int print_methods(struct ctl *ctl)
{
	json_t *list = json_array();
	for (unsigned i = 0; npumem_method_name(i); i++)
		if (ctl->json)
			json_array_append_new(list, json_string(npumem_method_name(i)));
		else
			puts(npumem_method_name(i));
	return ctl->json ? ctl_print(ctl, json_pack("{s:o}", "methods", list)) : CTL_OK;
}

static int check_method(struct ctl *ctl, const char *name)
{
	char nearest[SUGGEST_TEXT_BYTES];
	struct suggest suggest;
	suggest_init(&suggest, name);
	for (unsigned i = 0; npumem_method_name(i); i++) {
		if (!strcmp(npumem_method_name(i), name))
			return CTL_OK;
		suggest_offer(&suggest, npumem_method_name(i));
	}
	return ctl_usage(ctl, "there is no method \"%.60s\"%s; --list prints all", name,
			 suggest_text(&suggest, nearest));
}

static int print_answer(struct ctl *ctl, const char *answer)
{
	return ctl_print(ctl, json_loads(answer, 0, NULL));
}

static int run_json(struct ctl *ctl, const struct args *args)
{
	const char *json = args->n_words > 1 ? args->words[1] : "{}", *answer = NULL;
	char *read = NULL;
	size_t room;
	if (args_has(args, "--list"))
		return print_methods(ctl);
	if (!args->n_words)
		return ctl_usage(ctl, "call needs a method; --list prints all");
	int code = check_method(ctl, args->words[0]);
	if (!code)
		code = ctl_connect(ctl);
	if (!code && !strcmp(json, "-")) {
		if (getdelim(&read, &room, '\0', stdin) < 0)
			code = ctl_invalid(ctl, "nothing comes from stdin");
		json = read;
	}
	if (!code && npumem_call(ctl->npumem, args->words[0], json, &answer, &ctl->error))
		code = CTL_FAILED;
	/* Of a submit that was refused on the way, what ran before. */
	if (answer && !code)
		code = print_answer(ctl, answer);
	else if (answer)
		print_answer(ctl, answer);
	free(read);
	return code;
}

const struct command call_command = {
	.options = call_options,
	.least = 0,
	.most = 2,
	.run = run_json,
	.notes = "METHOD is a member of Request in npumem.proto, JSON its message ({} if left out, - from stdin): "
		 "members\n"
		 "by their names there, enumerations by name, bytes in base64, 64-bit numbers also as strings.\n"
		 "  npumemctl call open '{\"tensor\": {\"name\": \"x\"}}'\n"
		 "  npumemctl call fill '{\"tensor\": {\"name\": \"x\"}, \"integer\": 3}'\n"
		 "The answer is the Response without id, in the same form. See also man npumem-wire.",
};
