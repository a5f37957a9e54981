/* Pins. Compaction cannot move a tensor that is pinned, lies at a fixed address, or shares offsets with another
 * one. Many small pins could split all large free extents. Rule: with U users on the device, a place is 1 / (U +
 * 1) of an NPU's offsets, in one range without pins; the 1 is for the next user. A request of an ordinary user is
 * refused if its pins reduce the number of places and fewer than U are left. Root and the daemon's uid are free of
 * the rule. */
#ifndef SERVICE_PLACES_H
#define SERVICE_PLACES_H

#include <stdbool.h>

struct device_request;
struct npumem_error;
struct session;
struct tensor;

/* The places that were left before a request. */
struct places {
	bool is_free;	   /* the rule does not apply */
	unsigned n_users;  /* U, PLACES_USERS_MAX at most */
	unsigned n_pieces; /* places */
};

enum { PLACES_USERS_MAX = 255 };

/* Before the session allocates these, or some of them. An allocation of many turns is checked after each turn, and
 * others that begin meanwhile count what it holds. */
void places_before(const struct session *session, const struct device_request *requests, unsigned n,
		   struct places *places);
/* After that: whether they leave enough places. */
bool places_are_left(const struct session *session, const struct places *places);
/* RESOURCE_EXHAUSTED, once the tensors are released again. Pins at offsets `spare_from` to `spare_to` (fields of the
 * error) take no place. */
int places_refuse(const struct session *session, const struct places *places, struct npumem_error *error);

#endif
