/* From the daemon's messages to the structs of client.h. Every number that later code computes with is checked
 * here, so that a daemon that answers nonsense is at worst UNAVAILABLE. */
#ifndef CLIENT_LIB_REPLY_H
#define CLIENT_LIB_REPLY_H

#include <npumem/client.h>

#include "client/lib/messages/result.h"
#include "proto/convert.h"

/* Sets `error` (wholly; it need not be clear) from a response whose status is not OK. */
void reply_error(const Npumem__V1__Response *response, struct npumem_error *error);

/* Each: 0, or -1 where the message cannot be true; the struct is then undefined. */
int reply_info(const Npumem__V1__Info *message, struct npumem_info *info);
void reply_stat(const Npumem__V1__Stat *message, struct npumem_stat *stat);
/* A tensor without a place (another's, which this session may not see) has one that is all zero. */
int reply_tensor(const Npumem__V1__Tensor *message, struct npumem_tensor *tensor);
int reply_plan(const Npumem__V1__Plan *message, struct npumem_plan *plan);
/* An object in `result`; NULL: no memory. */
struct npumem_done *reply_done(const Npumem__V1__Done *message, struct result *result);
void reply_event(const Npumem__V1__Event *message, struct npumem_event *event);
void reply_move(const Npumem__V1__Move *message, struct npumem_move *move);

/* An array for n objects of so many bytes, and the objects, all in `result`. NULL: no memory. */
void *reply_rows(struct result *result, size_t n, size_t bytes);

#endif
