/* The service over one device: names, owners, rights and limits of its tensors. Knows sessions and uids, no
 * sockets or messages. */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include "daemon/service/tables.h"

/* `service` is zero; `device` and `heap` outlive it. `seed`: a number that no client can know. 0 or -ENOMEM. */
int service_init(struct service *service, struct device *device, const struct heap *heap, uint32_t uid,
		 uint64_t seed);
/* No session is left; the tensors that are left are freed, or where they are kept left as they are. */
void service_deinit(struct service *service);

/* Makes a new tensor's record (uid and name are set) its owner: names it, or gives it to `session` where it has no
 * name. */
void service_adopt(struct service *service, struct session *session, struct tensor *tensor);
/* A free of the tensor, and of its views with it, has arrived: from now on nobody finds them. No session has the
 * tensor any more; a session that has one of the views asks service_leaves_session. O(1). */
void service_mark_going(struct service *service, struct tensor *tensor);
/* Whether a tensor of a session's goes by another's request, its own or its base's; then the session no longer has
 * it.
 */
bool service_leaves_session(struct tensor *tensor);
/* Nobody finds a tensor any more, nor its views, and their names are free. Its space and its charge go with
 * service_release. O(1). */
void service_hide(struct service *service, struct tensor *tensor);
/* A tensor begins (by: 1) or ends (by: -1) to lie at this offset of each NPU. Views count nothing. */
void service_count_place(struct service *service, struct tensor *tensor, int64_t offset, int by);
/* Frees a tensor and its views, also those of other owners; returns their number. No operation uses them. Their
 * cells go with the next persist_commit. The time is linear in the views. */
unsigned service_release(struct service *service, struct tensor *tensor);
/* Ends what this process knows of a tensor: its bytes, and what is kept of it, are for the next one. */
void service_leave(struct service *service, struct tensor *tensor);

#endif
