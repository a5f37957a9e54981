/* The order of operations: what may start now, and what waits for which before it.
 *
 * Entries are taken in the order sent, across all sessions. An entry starts once no earlier unfinished one
 * conflicts with it: one of the two writes bytes that the other reads or writes. A barrier conflicts with
 * everything that touches any, and while it is under way with every change; what follows its owner's changes comes
 * after those before it.
 * Owns no entry and no thread; all calls come from the one thread that owns the device. */
#ifndef SERVICE_ORDER_H
#define SERVICE_ORDER_H

#include "daemon/device/operations/op.h"
#include "daemon/device/operations/op_rule.h"

/* What an entry touches of one tensor; a copy, since the tensor may be gone while later entries still compare. */
struct order_access {
	struct npumem_place place;
	unsigned kinds; /* of bytes: intersect.h */
	bool writes;
	bool coarse; /* of `place` only the offset and the bytes per NPU are set: all of that, on every NPU */
};

enum { ORDER_ACCESSES_MAX = OP_ACCESSES_MAX };

/* One unfinished operation or change; embedded in its owner. */
struct order_entry {
	struct order_access *accesses; /* the owner's; it lives until order_finish */
	unsigned n_accesses;
	bool barrier;
	const void *owner;
	bool changes; /* what may be found: what follows it and has the same owner comes after it */
	bool follows; /* the changes that its owner sent before it */
	bool alone;   /* comes after all that its owner sent before it, and before what it sends after it */
	/* Called once, from order_add or a later order_finish, when its turn has come. */
	void (*start)(struct order_entry *entry);
	/* Sets accesses again, before the start, where tensors may lie elsewhere or a name may mean another. */
	void (*refresh)(struct order_entry *entry);

	/* The order's own. */
	bool started;
	bool stale;	   /* what it touches may be something else now */
	uint64_t version;  /* of the tensors that its accesses are from */
	int64_t from, end; /* offsets that any of its accesses has */
	bool writes;	   /* some of them */
	bool coarse; /* it took too long to compare with what is in flight: from, end and writes have to do */
	unsigned n_before; /* unfinished entries that it waits for */
	struct order_entry *next, *prev;
};

struct order {
	const struct npumem_geometry *geometry;
	struct order_entry *first, *last;
	unsigned n;
	uint64_t version; /* counts the tensors that came and went */
	bool starting;	  /* a loop over what is ready is running */
};

void order_init(struct order *order, const struct npumem_geometry *geometry);
void order_deinit(struct order *order);

/* True where nothing unfinished conflicts, so that the caller may do at once what this entry, which is in no
 * order, says. */
bool order_is_free(const struct order *order, const struct order_entry *entry);
/* True where nothing at all is unfinished. */
static inline bool order_is_idle(const struct order *order)
{
	return !order->first;
}

/* A tensor came or went: what waits looks again at what it touches before it starts. */
static inline void order_tensors_changed(struct order *order)
{
	order->version++;
}

/* Takes an entry; starts it at once where nothing conflicts. */
void order_add(struct order *order, struct order_entry *entry);

/* Takes an entry out, finished or cancelled before its start, and starts what waited only for it. The entry may be
 * freed by the caller before anything starts: it is not touched after the first start. */
void order_finish(struct order *order, struct order_entry *entry);

/* Copies what an operation touches; returns how many (`accesses`: ORDER_ACCESSES_MAX). */
unsigned order_accesses(const struct op *op, struct order_access *accesses);
/* All bytes of a tensor's place, written: for freeing and sealing. */
void order_access_whole(const struct tensor *tensor, struct order_access *access);

#endif
