/* Requests that are not answered yet, and what can be said beside them. */
#ifndef TESTS_RANDOM_UNDER_WAY_H
#define TESTS_RANDOM_UNDER_WAY_H

#include "tests/random/run.h"

/* Whether an allocation of the client may stand in line. */
bool under_way_has_waiters(const struct run *run, unsigned peer);
/* When an allocation that waits takes effect is not for its client to say: nothing that it sends after it names
 * its tensors until it is answered. False: the request would make one of that name. */
bool under_way_avoid_waiters(const struct run *run, unsigned peer, struct trace_request *request);
/* Marks `record`, which is about to be sent, and what is under way, where one may write what the other tells of.
 */
void under_way_note_disturbed(struct run *run, struct run_record *record);

#endif
