/* An answer without what is long in it: the data of its reads. */
#ifndef PROTO_OUTLINE_H
#define PROTO_OUTLINE_H

#include <stddef.h>
#include <stdint.h>

/* Of the n bytes of a Response that this process encoded: writes all but the data, where `to` is not NULL, and
 * returns how many bytes that is or would be, which is never more than n. 0: these bytes are no message. */
size_t outline_response(const uint8_t *message, size_t n, uint8_t *to);

#endif
