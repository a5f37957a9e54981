/* What the commands share. Invariant: a command that fails has said why in ctl->error, and printed nothing. */
#define _GNU_SOURCE /* O_PATH */
#include "client/ctl/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/ctl/core/words/words.h"

enum { CTL_RETRY_MS = 50 };

static int ctl_set(struct ctl *ctl, int code, int status, const char *format, va_list arguments)
{
	char message[NPUMEM_MESSAGE_BYTES];
	vsnprintf(message, sizeof(message), format, arguments);
	npumem_error_set(&ctl->error, status, "%s", message);
	return code;
}

int ctl_fail(struct ctl *ctl, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int code = ctl_set(ctl, CTL_FAILED, NPUMEM_INTERNAL, format, arguments);
	va_end(arguments);
	return code;
}

int ctl_invalid(struct ctl *ctl, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int code = ctl_set(ctl, CTL_FAILED, NPUMEM_INVALID, format, arguments);
	va_end(arguments);
	return code;
}

int ctl_usage(struct ctl *ctl, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int code = ctl_set(ctl, CTL_USAGE, NPUMEM_INVALID, format, arguments);
	va_end(arguments);
	return code;
}

int ctl_refuse(struct ctl *ctl, const struct npumem_error *why, const char *format, ...)
{
	struct npumem_error error = *why;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(error.message, sizeof(error.message), format, arguments);
	va_end(arguments);
	ctl->error = error;
	return CTL_FAILED;
}

uint64_t ctl_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

double ctl_now(void)
{
	return (double)ctl_now_ns() / 1e9;
}

bool ctl_make_directory(char path[CTL_DIRECTORY_BYTES])
{
	snprintf(path, CTL_DIRECTORY_BYTES, "/tmp/npumem-XXXXXX");
	return mkdtemp(path);
}

bool ctl_is_remote(const struct ctl *ctl)
{
	const char *address = ctl->address ? ctl->address : getenv("NPUMEM_SOCKET");
	return address && !strncmp(address, "ssh:", 4);
}

int ctl_connect(struct ctl *ctl)
{
	const struct timespec pause = {.tv_nsec = CTL_RETRY_MS * 1000000L};
	struct npumem_error error;
	double until = ctl_now() + ctl->reconnect;
	if (ctl->npumem)
		return CTL_OK;
	bool spawn = ctl->address && !strncmp(ctl->address, "spawn:", 6);
	bool remote = ctl_is_remote(ctl);
	int status = npumem_open(ctl->address, NULL, &ctl->npumem, &error);
	while (status == NPUMEM_UNAVAILABLE && !spawn && ctl_now() < until) {
		nanosleep(&pause, NULL);
		status = npumem_open(ctl->address, NULL, &ctl->npumem, &error);
	}
	if (!status)
		return CTL_OK;
	if (status == NPUMEM_UNAVAILABLE && !spawn && !remote && !ctl->all_devices)
		return ctl_refuse(ctl, &error, "%.400s (start npumemd, or use --spawn)", error.message);
	ctl->error = error;
	return CTL_FAILED;
}

int ctl_info(struct ctl *ctl, const struct npumem_info **info)
{
	int code = ctl_connect(ctl);
	return !code && npumem_info(ctl->npumem, info, &ctl->error) ? CTL_FAILED : code;
}

/* The names that there are, with the one meant, where a tensor was not found. */
static int ctl_suggest(struct ctl *ctl, const char *name)
{
	struct npumem_error why = ctl->error;
	char nearest[SUGGEST_TEXT_BYTES], full[NPUMEM_NAME_BYTES_MAX + 16];
	const struct npumem_tensors *tensors;
	const struct npumem_info *info;
	struct suggest suggest;
	suggest_init(&suggest, name);
	if (npumem_info(ctl->npumem, &info, NULL) || npumem_list(ctl->npumem, &tensors, NULL))
		return CTL_FAILED;
	for (unsigned i = 0; i < tensors->n; i++) {
		const struct npumem_tensor *tensor = tensors->list[i];
		if (tensor->uid == info->uid)
			suggest_offer(&suggest, tensor->name);
		snprintf(full, sizeof(full), "%" PRIu32 ":%s", tensor->uid, tensor->name);
		if (tensor->name[0])
			suggest_offer(&suggest, full);
	}
	return ctl_refuse(ctl, &why, "%.400s%s", why.message, suggest_text(&suggest, nearest));
}

int ctl_open(struct ctl *ctl, const char *name, const struct npumem_tensor **tensor)
{
	int code = ctl_connect(ctl);
	if (code)
		return code;
	if (!npumem_open_tensor(ctl->npumem, name, tensor, &ctl->error))
		return CTL_OK;
	return ctl->error.status == NPUMEM_NOT_FOUND ? ctl_suggest(ctl, name) : CTL_FAILED;
}

static bool is_same_file(const struct stat *file, int folder, const char *path)
{
	struct stat other;
	return !fstatat(folder, path, &other, 0) && other.st_dev == file->st_dev && other.st_ino == file->st_ino;
}

static bool is_named(const struct stat *file, const char *path)
{
	int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool is_network = folder >= 0 && is_same_file(file, folder, "network.json");
	if (folder >= 0)
		close(folder);
	return is_network || is_same_file(file, AT_FDCWD, path);
}

int ctl_check_output(struct ctl *ctl, const struct args *args, const char *path)
{
	struct stat file;
	if (!path || stat(path, &file) || !S_ISREG(file.st_mode))
		return CTL_OK;
	for (unsigned i = 0; i < args->n_words + args->n_given; i++) {
		const char *other = i < args->n_words ? args->words[i] : args->given[i - args->n_words].value;
		if (other && other != path && is_named(&file, other))
			return ctl_usage(ctl,
					 "the output %.200s is the same file as %.200s, which this command reads",
					 path, other);
	}
	return CTL_OK;
}

FILE *ctl_create(struct ctl *ctl, const char *path)
{
	FILE *file = fopen(path, "w");
	if (!file)
		ctl_fail(ctl, "%.200s: %s", path, strerror(errno));
	return file;
}

int ctl_close(struct ctl *ctl, const char *path, FILE *file)
{
	bool bad = ferror(file);
	return fclose(file) || bad ? ctl_fail(ctl, "%.200s: %s", path, strerror(errno)) : CTL_OK;
}

static int print_object(struct ctl *ctl, json_t *object, FILE *out, size_t flags)
{
	if (!object)
		return ctl_fail(ctl, "a name in the result is no UTF-8");
	int result = json_dumpf(object, out, flags);
	json_decref(object);
	if (result || putc('\n', out) == EOF)
		return ctl_fail(ctl, "cannot write the result: %s", strerror(errno));
	return CTL_OK;
}

int ctl_print(struct ctl *ctl, json_t *object)
{
	ctl->printed |= object != NULL;
	return print_object(ctl, object, stdout, JSON_INDENT(2));
}

int ctl_print_line(struct ctl *ctl, json_t *object, FILE *out)
{
	int code = print_object(ctl, object, out, JSON_COMPACT);
	if (!code && fflush(out))
		code = ctl_fail(ctl, "cannot write the result: %s", strerror(errno));
	return code;
}

/* {"error": {"status", "message", "fields"}}; NULL where the message is no UTF-8. */
static json_t *error_object(const struct npumem_error *error)
{
	const char *status = npumem_status_name(error->status);
	json_t *fields = json_object();
	for (unsigned i = 0; i < error->n_fields; i++) {
		const struct npumem_field *field = &error->fields[i];
		json_object_set_new(fields, field->key,
				    field->is_text ? json_string(field->text) : json_integer(field->number));
	}
	return json_pack("{s:{s:s, s:s, s:o}}", "error", "status", status ? status : "INTERNAL", "message",
			 error->message, "fields", fields);
}

void ctl_complain(const struct ctl *ctl, const char *usage)
{
	json_t *object = ctl->json && !ctl->printed ? error_object(&ctl->error) : NULL;
	if (object && !json_dumpf(object, stdout, JSON_INDENT(2)))
		putchar('\n');
	json_decref(object);
	fflush(stdout);
	fprintf(stderr, "npumemctl: %s%s\n", ctl->error.message, usage);
}

void ctl_warn(const struct ctl *ctl, const char *warning)
{
	if (warning[0] && !ctl->json && !ctl->hushed)
		fprintf(stderr, "npumemctl: warning: %s\n", warning);
}
