/* Payloads that lie in the bytes of a message instead of being copied: a list in a budget's memory. */
#ifndef PROTO_BORROWED_H
#define PROTO_BORROWED_H

#include "proto/budget.h"

struct borrowed {
	ProtobufCBinaryData *payload;
	struct borrowed *next;
};

/* This payload may lie in the message's bytes. False: the budget ends. */
static inline bool borrowed_add(struct borrowed **list, struct budget *budget, ProtobufCBinaryData *payload)
{
	struct borrowed *borrowed = budget_alloc(budget, sizeof(*borrowed));

	if (!borrowed)
		return false;
	*borrowed = (struct borrowed){payload, *list};
	*list = borrowed;
	return true;
}

/* The message's n bytes lie at `to` from now on. */
static inline void borrowed_rebase(const struct borrowed *list, const uint8_t *from, size_t n, uint8_t *to)
{
	for (; list; list = list->next) {
		uintptr_t off = (uintptr_t)list->payload->data - (uintptr_t)from;

		/* A payload that was merged, or came twice, is in the list more than once. */
		if (list->payload->data && off < n)
			list->payload->data = to + off;
	}
}

#endif
