/* Pins. Compaction cannot move a tensor that is pinned, lies at a fixed address, or shares offsets with another
 * one. Many tiny ones could leave no large piece to anybody. Rule: with U users on the device and one place kept
 * for the next one, an equal share is 1 / (U + 1) of each NPU. Between the tensors that cannot move, an equal
 * share must be left in one piece for each user but one. A request of an ordinary user is refused where it takes
 * such a piece and fewer than U are left. Root and the daemon's uid are free of the rule. */
#ifndef SERVICE_PLACES_H
#define SERVICE_PLACES_H

#include "daemon/service/session.h"

/* What was left before a request. */
struct places {
	bool is_free;	  /* of the rule */
	unsigned n_users; /* U, PLACES_USERS_MAX at most */
	unsigned n_pieces;
};

enum { PLACES_USERS_MAX = 255 };

/* Before the session allocates these. */
void places_before(const struct session *session, const struct device_request *requests, unsigned n,
		   struct places *places);
/* After that. 0; RESOURCE_EXHAUSTED: the device has released the tensors again. The fields `spare_from` and
 * `spare_to` say in which offsets pins take nothing from anybody. */
int places_check(const struct session *session, const struct places *places, struct tensor *const *tensors,
		 unsigned n, struct npumem_error *error);

#endif
