/* Owns nothing. No fact has a line break: text of a state is printed with its control characters as question
 * marks. */
#include "daemon/server/process/describe.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/store/describe.h"

static void print_text(const char *key, const char *text)
{
	if (!text[0])
		return;
	printf("%s ", key);
	for (; *text; text++)
		putchar((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
	putchar('\n');
}

static void print_state(const struct store_description *state)
{
	printf("verdict %s\n", verdict_name(state->verdict));
	print_text("words", verdict_words(state->verdict));
	print_text("reason", state->line);
	if (!state->format)
		return;
	printf("format %" PRIu32 "\n", state->format);
	if (!state->geometry[0])
		return;
	print_text("geometry", state->geometry);
	printf("memory_bytes %" PRIu64 "\ntensors %" PRIu32 "\nclosed %d\nin_use %d\n", state->memory_bytes,
	       state->n_tensors, state->was_closed, state->is_in_use);
}

static void print_aside(void *ctx, const char *name, const struct aside_note *note)
{
	char path[PATH_MAX], error[STORE_ERROR_BYTES];
	struct store_description state;

	if (snprintf(path, sizeof(path), "%s/%s", (const char *)ctx, name) >= (int)sizeof(path))
		return;
	print_text("aside", name);
	print_text("time", note->time);
	print_text("set_aside_as", note->verdict);
	print_text("why", note->line);
	if (!store_describe(path, &heap_libc, &state, error))
		print_state(&state);
}

int describe_state(const char *path)
{
	struct store_description state;
	char error[STORE_ERROR_BYTES];
	int directory;

	if (store_describe(path, &heap_libc, &state, error)) {
		print_text("error", error);
		return 1;
	}
	print_state(&state);
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return 1;
	aside_each(directory, print_aside, (void *)(uintptr_t)path);
	close(directory);
	return 0;
}
