/* Sessions by the token that they are resumed with: a hash table of fixed size, so that adding one cannot fail and
 * no turn moves it. A lookup takes as long as there are sessions in one bucket: 4 of 16,384. */
#ifndef SERVICE_TOKENS_H
#define SERVICE_TOKENS_H

#include "daemon/service/tables.h"

/* Of a session whose `token` is set. */
void tokens_add(struct tokens *tokens, struct session *session);
/* Of one that was added, whose token is still the same. */
void tokens_remove(struct tokens *tokens, struct session *session);
/* The session of this uid with this token; NULL: there is none. The time does not depend on how many bytes of a
 * token are right. */
struct session *tokens_find(const struct tokens *tokens, uint32_t uid, const uint8_t token[PERSIST_TOKEN_BYTES]);

#endif
