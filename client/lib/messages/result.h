/* What the library hands out: objects of its own, in a block that lives until its last reference is given back, or
 * its connection is closed. Members can be appended to them, for no user knows their size.
 *
 * Each object has a word in front that leads to its block, so that any of them can be kept and released. */
#ifndef CLIENT_LIB_RESULT_H
#define CLIENT_LIB_RESULT_H

#include "client/lib/connection/memory.h"

struct result {
	const struct memory *memory;
	struct result *next, **at;     /* among the connection's */
	void (*destroy)(void *object); /* NULL, or called with the first object at the end */
	struct result_chunk *more;
	unsigned references;
	size_t used, room;
	_Alignas(16) unsigned char bytes[];
};

/* A block with room for `room` bytes of objects, with one reference, in `list`. NULL: no memory. */
struct result *result_new(const struct memory *memory, struct result **list, size_t room);
/* What one object of so many bytes takes of a block's room. */
size_t result_room(size_t bytes);

/* An object of zeroed bytes; NULL: no memory, which within the block's room cannot be. */
void *result_take(struct result *result, size_t bytes);
/* The same for an array; NULL also where n * bytes overflows. */
void *result_array(struct result *result, size_t n, size_t bytes);
/* An object that is a copy of a text. */
const char *result_text(struct result *result, const char *text);

/* A reference more, or one less, to the block of an object. */
void result_keep(const void *object);
void result_release(const void *object);
void result_unref(struct result *result);
/* Forgets all objects; there is one reference. */
void result_reset(struct result *result);
/* Ends all blocks of a list, whatever refers to them. */
void result_end_all(struct result **list);

#endif
