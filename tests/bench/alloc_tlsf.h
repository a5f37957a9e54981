/* The peer of bench_alloc: two-level segregated fit with its nodes out of band, in an array by offset, of units of
 * 128 bytes and with 32 steps an octave (Masmano et al., 2004). It does what such an allocator must and no more:
 * no place by address, no tags, no other alignment, no largest free block. All of it is inline. */
#ifndef BENCH_ALLOC_TLSF_H
#define BENCH_ALLOC_TLSF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	TLSF_UNIT = 128,
	TLSF_SUB_BITS = 5,
	TLSF_SUBS = 1 << TLSF_SUB_BITS,
	TLSF_CLASSES = 28,
};

#define TLSF_NONE UINT32_MAX

/* Of the block that starts at the unit of the same number. */
struct tlsf_node {
	uint32_t units, left; /* its size; where the block before it starts */
	uint32_t next, prev;  /* in the bin of a free one */
	bool is_free;
};

struct tlsf {
	uint32_t classes, subs[TLSF_CLASSES], bins[TLSF_CLASSES][TLSF_SUBS];
	struct tlsf_node *nodes; /* and one behind the end, which is taken */
};

struct tlsf_bin {
	unsigned class, sub;
};

static inline unsigned tlsf_log2(uint32_t x)
{
	return 31 - (unsigned)__builtin_clz(x);
}

static inline struct tlsf_bin tlsf_bin_of(uint32_t units)
{
	if (units < TLSF_SUBS)
		return (struct tlsf_bin){0, units};
	unsigned shift = tlsf_log2(units) - TLSF_SUB_BITS;
	return (struct tlsf_bin){shift + 1, (units >> shift) & (TLSF_SUBS - 1)};
}

static inline void tlsf_push(struct tlsf *tlsf, uint32_t at)
{
	struct tlsf_node *node = &tlsf->nodes[at];
	struct tlsf_bin bin = tlsf_bin_of(node->units);
	uint32_t *head = &tlsf->bins[bin.class][bin.sub];
	node->is_free = true;
	node->prev = TLSF_NONE;
	node->next = *head;
	if (*head != TLSF_NONE)
		tlsf->nodes[*head].prev = at;
	*head = at;
	tlsf->subs[bin.class] |= UINT32_C(1) << bin.sub;
	tlsf->classes |= UINT32_C(1) << bin.class;
}

static inline void tlsf_remove(struct tlsf *tlsf, uint32_t at)
{
	struct tlsf_node *node = &tlsf->nodes[at];
	node->is_free = false;
	if (node->next != TLSF_NONE)
		tlsf->nodes[node->next].prev = node->prev;
	if (node->prev != TLSF_NONE) {
		tlsf->nodes[node->prev].next = node->next;
		return;
	}
	struct tlsf_bin bin = tlsf_bin_of(node->units);
	tlsf->bins[bin.class][bin.sub] = node->next;
	if (node->next != TLSF_NONE)
		return;
	tlsf->subs[bin.class] &= ~(UINT32_C(1) << bin.sub);
	if (!tlsf->subs[bin.class])
		tlsf->classes &= ~(UINT32_C(1) << bin.class);
}

/* A block of at least `units`: the first of the lowest bin where all are; else any of the bin of that size. */
static inline uint32_t tlsf_find(const struct tlsf *tlsf, uint32_t units)
{
	uint32_t round = units < TLSF_SUBS ? 0 : (UINT32_C(1) << (tlsf_log2(units) - TLSF_SUB_BITS)) - 1;
	struct tlsf_bin bin = tlsf_bin_of(units + round);
	uint32_t subs = tlsf->subs[bin.class] & (UINT32_MAX << bin.sub);
	if (!subs) {
		uint32_t classes = tlsf->classes & (uint32_t)(UINT64_MAX << (bin.class + 1));
		if (classes) {
			bin.class = (unsigned)__builtin_ctz(classes);
			subs = tlsf->subs[bin.class];
		}
	}
	if (subs)
		return tlsf->bins[bin.class][__builtin_ctz(subs)];
	bin = tlsf_bin_of(units);
	uint32_t at = tlsf->bins[bin.class][bin.sub];
	while (at != TLSF_NONE && tlsf->nodes[at].units < units)
		at = tlsf->nodes[at].next;
	return at;
}

static inline bool tlsf_open(struct tlsf *tlsf, uint64_t bytes)
{
	uint32_t units = (uint32_t)(bytes / TLSF_UNIT);
	memset(tlsf, 0, sizeof(*tlsf));
	memset(tlsf->bins, 0xff, sizeof(tlsf->bins));
	tlsf->nodes = calloc((size_t)units + 1, sizeof(*tlsf->nodes));
	if (!tlsf->nodes)
		return false;
	tlsf->nodes[0] = (struct tlsf_node){.units = units, .left = TLSF_NONE};
	tlsf_push(tlsf, 0);
	return true;
}

static inline void tlsf_close(struct tlsf *tlsf)
{
	free(tlsf->nodes);
}

static inline bool tlsf_alloc(struct tlsf *tlsf, uint64_t bytes, uint64_t *offset)
{
	uint32_t units = (uint32_t)((bytes + TLSF_UNIT - 1) / TLSF_UNIT), at = tlsf_find(tlsf, units);
	if (at == TLSF_NONE)
		return false;
	tlsf_remove(tlsf, at);
	struct tlsf_node *node = &tlsf->nodes[at];
	if (node->units > units) {
		uint32_t rest = at + units;
		tlsf->nodes[rest].units = node->units - units;
		tlsf->nodes[rest].left = at;
		tlsf->nodes[at + node->units].left = rest;
		node->units = units;
		tlsf_push(tlsf, rest);
	}
	*offset = (uint64_t)at * TLSF_UNIT;
	return true;
}

static inline void tlsf_release(struct tlsf *tlsf, uint64_t offset)
{
	uint32_t at = (uint32_t)(offset / TLSF_UNIT), right = at + tlsf->nodes[at].units;
	uint32_t left = tlsf->nodes[at].left;
	if (tlsf->nodes[right].is_free) {
		tlsf_remove(tlsf, right);
		tlsf->nodes[at].units += tlsf->nodes[right].units;
	}
	if (left != TLSF_NONE && tlsf->nodes[left].is_free) {
		tlsf_remove(tlsf, left);
		tlsf->nodes[left].units += tlsf->nodes[at].units;
		at = left;
	}
	tlsf->nodes[at + tlsf->nodes[at].units].left = at;
	tlsf_push(tlsf, at);
}

#endif
