/* Invariant: all blocks are in one ring. memory_grow: n says how much room there is, 16 items, or the power of two
 * that n is not above. */
#include "client/ctl/core/memory.h"

#include <jansson.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROW_LEAST = 16 };

struct block {
	struct block *next, *previous;
	alignas(max_align_t) unsigned char bytes[];
};

static struct block all = {&all, &all};

static struct block *block_of(void *bytes)
{
	return (struct block *)(void *)((unsigned char *)bytes - offsetof(struct block, bytes));
}

static void unlink_block(const struct block *block)
{
	block->next->previous = block->previous;
	block->previous->next = block->next;
}

/* `old` NULL: a new block. NULL: no memory, and the old one is as it was. */
static void *resize(void *old, size_t n, size_t bytes)
{
	size_t total;
	if (__builtin_mul_overflow(n, bytes, &total) || total > SIZE_MAX - sizeof(struct block))
		return NULL;
	struct block *before = old ? block_of(old) : NULL, *block;
	if (before)
		unlink_block(before);
	block = realloc(before, sizeof(*block) + total);
	struct block *linked = block ? block : before;
	if (!linked)
		return NULL;
	linked->next = all.next;
	linked->previous = &all;
	all.next = all.next->previous = linked;
	return block ? block->bytes : NULL;
}

void memory_none(void)
{
	fputs("npumemctl: no memory\n", stderr);
	exit(EXIT_FAILURE);
}

static void *there_is(void *memory)
{
	if (!memory)
		memory_none();
	return memory;
}

static void *take(size_t bytes)
{
	return there_is(resize(NULL, 1, bytes));
}

__attribute__((constructor)) static void set_json(void)
{
	json_set_alloc_funcs(take, memory_free);
}

void *memory_new(size_t n, size_t bytes)
{
	return memset(there_is(resize(NULL, n, bytes)), 0, n * bytes);
}

char *memory_text(const char *format, ...)
{
	va_list arguments, again;
	va_start(arguments, format);
	va_copy(again, arguments);
	size_t bytes = (size_t)vsnprintf(NULL, 0, format, again) + 1;
	va_end(again);
	char *text = take(bytes);
	vsnprintf(text, bytes, format, arguments);
	va_end(arguments);
	return text;
}

void *memory_grow(void *items, size_t n, size_t bytes)
{
	char *array;
	memcpy(&array, items, sizeof(array)); /* a pointer of any type may not be read through a void ** */
	if (!n || (n >= GROW_LEAST && !(n & (n - 1)))) {
		array = there_is(resize(array, n ? 2 * n : GROW_LEAST, bytes));
		memcpy(items, &array, sizeof(array));
	}
	return memset(array + n * bytes, 0, bytes);
}

void *memory_data(size_t n, size_t bytes)
{
	return resize(NULL, n, bytes);
}

void memory_free(void *block)
{
	if (!block)
		return;
	unlink_block(block_of(block));
	free(block_of(block));
}

void memory_end(void)
{
	while (all.next != &all)
		memory_free(all.next->bytes);
}
