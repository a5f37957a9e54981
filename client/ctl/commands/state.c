/* state: everything at once, for programs: what the daemon is, how its bytes are used, all tensors; or what a
 * state directory has, which npumemd reads: the format of its files is the daemon's alone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/ctl/command.h"

#include "client/ctl/core/output/output.h"

static int print_running(struct ctl *ctl)
{
	const struct npumem_details *details;
	const struct npumem_tensors *tensors;
	const struct npumem_info *info;
	int code = ctl_connect(ctl);
	if (code)
		return code;
	if (npumem_info(ctl->npumem, &info, &ctl->error) ||
	    npumem_stat_details(ctl->npumem, false, &details, &ctl->error) ||
	    npumem_list(ctl->npumem, &tensors, &ctl->error))
		return CTL_FAILED;
	return ctl_print(ctl,
			 json_pack("{s:o, s:o, s:o}", "info", facts_object(info), "stat", metrics_json(details),
				   "tensors", present_tensors(tensors->list, tensors->n)));
}

/* ---- a directory ---- */

/* npumemd --describe-state DIR, whose stdout is read. */
static int daemon_start(struct ctl *ctl, const char *directory, pid_t *pid, FILE **facts)
{
	struct npumem_program program;
	int ends[2];
	const char *name = npumem_program(&program);
	if (pipe(ends))
		return ctl_fail(ctl, "cannot make a pipe: %s", strerror(errno));
	*pid = fork();
	if (!*pid) {
		if (dup2(ends[1], STDOUT_FILENO) >= 0) {
			close(ends[0]);
			close(ends[1]);
			execlp(program.path, name, "--describe-state", directory, (char *)NULL);
		}
		fprintf(stderr, "npumemctl: cannot run %s: %s\n", program.path, strerror(errno));
		_exit(CTL_FAILED);
	}
	close(ends[1]);
	*facts = *pid < 0 ? NULL : fdopen(ends[0], "r");
	if (!*facts)
		close(ends[0]);
	return *facts ? CTL_OK : ctl_fail(ctl, "cannot run %s: %s", program.path, strerror(errno));
}

/* A fact's value as what it is: a number, yes or no, or text. */
static json_t *value_of(const char *key, const char *text)
{
	if (!strcmp(key, "closed") || !strcmp(key, "in_use"))
		return json_boolean(*text == '1');
	if (!strcmp(key, "format") || !strcmp(key, "memory_bytes") || !strcmp(key, "tensors"))
		return json_integer(strtoll(text, NULL, 10));
	return json_string(text);
}

/* Lines KEY VALUE; those behind "aside NAME" are of that state. */
static json_t *facts_read(FILE *facts)
{
	json_t *state = json_object(), *list = json_array(), *at = state;
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	while ((n = getline(&line, &room, facts)) > 0) {
		char *text = strchr(line, ' ');
		if (line[n - 1] == '\n')
			line[n - 1] = 0;
		if (!text)
			continue;
		*text++ = 0;
		if (!strcmp(line, "aside")) {
			at = json_object();
			json_array_append_new(list, at);
		}
		json_object_set_new(at, line, value_of(line, text));
	}
	free(line);
	json_object_set_new(state, "set_aside", list);
	return state;
}

static void print_facts(const json_t *state, const char *indent)
{
	json_int_t format = jsons_number(state, "format");
	if (*jsons_string(state, "reason"))
		printf("%s%s\n", indent, jsons_string(state, "reason"));
	if (format)
		printf("%sformat %lld\n", indent, (long long)format);
	if (*jsons_string(state, "geometry"))
		printf("%s%s\n%s%lld tensors and views, %s\n", indent, jsons_string(state, "geometry"), indent,
		       (long long)jsons_number(state, "tensors"),
		       json_is_true(json_object_get(state, "in_use"))	? "in use by a daemon"
		       : json_is_true(json_object_get(state, "closed")) ? "closed"
									: "not closed by its last daemon");
}

static void print_text(const char *directory, const json_t *state)
{
	const json_t *list = json_object_get(state, "set_aside");
	printf("%s: the state %s\n", directory, jsons_string(state, "words"));
	print_facts(state, "  ");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *aside = json_array_get(list, i);
		printf("set aside: %s/%s, at %s\n  then: %s (%s)\n", directory, jsons_string(aside, "aside"),
		       jsons_string(aside, "time"), jsons_string(aside, "why"),
		       jsons_string(aside, "set_aside_as"));
		print_facts(aside, "  ");
	}
}

static int print_directory(struct ctl *ctl, const char *directory)
{
	FILE *facts;
	pid_t pid;
	int ended, code = daemon_start(ctl, directory, &pid, &facts);
	if (code)
		return code;
	json_t *state = facts_read(facts);
	fclose(facts);
	while (waitpid(pid, &ended, 0) < 0)
		if (errno != EINTR)
			return ctl_fail(ctl, "cannot wait for npumemd: %s", strerror(errno));
	if (!WIFEXITED(ended) || WEXITSTATUS(ended))
		return ctl_fail(ctl, "%.400s",
				*jsons_string(state, "error") ? jsons_string(state, "error")
							      : "npumemd has failed");
	json_object_set_new(state, "directory", json_string(directory));
	if (ctl->json)
		return ctl_print(ctl, state);
	print_text(directory, state);
	return CTL_OK;
}

static int state_run(struct ctl *ctl, const struct args *args)
{
	return args->n_words ? print_directory(ctl, args->words[0]) : print_running(ctl);
}

const struct command state_command = {
	.most = 1,
	.run = state_run,
	.notes = "Without DIR one JSON object, with or without --json: info, stat and tensors, each as those "
		 "commands\n"
		 "(ls) print it. With DIR what that state directory has, whether a daemon runs or not: whether "
		 "the state\n"
		 "can be used, its format, geometry and number of tensors, whether it was closed, and what was "
		 "set aside,\n"
		 "when and why. Only the owner of the directory, and root, can read it.",
};
