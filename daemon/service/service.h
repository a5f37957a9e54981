/* The service over one device: names, owners, rights and limits of its tensors. Knows sessions and uids, no
 * sockets or messages. */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include "daemon/service/tables.h"

/* `service` is zero; `device` and `heap` outlive it. `seed`: a number that no client can know. 0 or -ENOMEM. */
int service_init(struct service *service, struct device *device, const struct heap *heap, uint32_t uid,
		 uint64_t seed);
/* No session may be left. Remaining tensors end with the device, or stay in the store. */
void service_deinit(struct service *service);

/* Makes a new tensor's record (uid and name are set) its owner: adds its name, or adds it to `session` if it has
 * none. */
void service_adopt(struct service *service, struct session *session, struct tensor *tensor);
/* A free of the tensor, and of its views with it, has arrived: no request finds them any more. The tensor leaves
 * its session's list; a view leaves it by service_leaves_session. O(1). */
void service_mark_going(struct service *service, struct tensor *tensor);
/* Whether a free of the tensor or of its base has arrived; if so, the tensor leaves its session's list. */
bool service_leaves_session(struct tensor *tensor);
/* No request finds the tensor and its views any more, and their names are free. service_release gives back space
 * and charges. O(1). */
void service_hide(struct service *service, struct tensor *tensor);
/* Counts a tensor (by: 1) at this offset of each NPU, or no longer (by: -1). Views are not counted. */
void service_count_place(struct service *service, struct tensor *tensor, int64_t offset, int by);
/* Frees a tensor and its views, also those of other owners; returns their number. No operation uses them. Their
 * cells are dropped by the next persist_commit. The time is linear in the views. */
unsigned service_release(struct service *service, struct tensor *tensor);
/* Ends a tensor's record in this process only: its bytes and its cell are for the next process. */
void service_leave(struct service *service, struct tensor *tensor);

#endif
