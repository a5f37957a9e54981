/* An allocator for protobuf-c's unpacking that hands out one growing arena and no more than a budget: a small
 * frame can ask for many times its size in empty messages, and this is where that ends. Memory stays with the
 * budget and is used again by the next message. */
#ifndef PROTO_BUDGET_H
#define PROTO_BUDGET_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BUDGET_ALIGN = 16 };

struct budget {
	ProtobufCAllocator allocator; /* pass &budget->allocator to the unpack function */
	void *(*alloc)(void *ctx, size_t bytes);
	void (*free)(void *ctx, void *memory);
	void *ctx;
	struct budget_chunk *chunks; /* the one that is cut from first */
	uint8_t *at, *end;	     /* of that one: what is left */
	size_t spent, limit;
	size_t held;   /* by the chunks */
	bool exceeded; /* an allocation was refused by the limit, not by the heap */
	bool starved;  /* or the other way round */
};

/* alloc and free: where the chunks come from. Takes no memory yet. */
void budget_init(struct budget *budget, void *(*alloc)(void *, size_t), void (*release)(void *, void *),
		 void *ctx);
void budget_deinit(struct budget *budget);
/* Forgets everything unpacked so far and sets the limit for the next message: a frame of `frame_bytes` may spend
 * budget_limit(frame_bytes). Keeps one chunk. */
void budget_reset(struct budget *budget, size_t frame_bytes);
size_t budget_limit(size_t frame_bytes);
/* All memory of `from`, with what was unpacked into it, is the new budget `to`'s. `from` is as after budget_init. */
void budget_move(struct budget *from, struct budget *to);
/* Memory for any type, until the reset. NULL: `exceeded` or `starved` says why. */
void *budget_alloc_slowly(struct budget *budget, size_t bytes);
static inline void *budget_alloc(struct budget *budget, size_t bytes)
{
	size_t n = (bytes + BUDGET_ALIGN - 1) & ~(size_t)(BUDGET_ALIGN - 1);
	void *memory = budget->at;

	if (bytes - 1 >= (size_t)(budget->end - budget->at) || n > budget->limit - budget->spent)
		return budget_alloc_slowly(budget, bytes);
	budget->at += n;
	budget->spent += n;
	return memory;
}

#endif
