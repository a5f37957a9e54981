/* Tokens are random, so their first bytes are a hash that no client can choose. The bucket follows from the bytes
 * that the client sent, and each token in it is compared as a whole. */
#include "daemon/service/kept/tokens.h"

#include <utlist.h>

static size_t bucket_of(const uint8_t *token)
{
	return (token[0] | (size_t)token[1] << 8) % TOKENS_BUCKETS;
}

void tokens_add(struct tokens *tokens, struct session *session)
{
	LL_PREPEND2(tokens->buckets[bucket_of(session->token)], session, bucket_next);
}

void tokens_remove(struct tokens *tokens, struct session *session)
{
	LL_DELETE2(tokens->buckets[bucket_of(session->token)], session, bucket_next);
}

static bool is_same(const uint8_t *a, const uint8_t *b)
{
	unsigned differ = 0;

	for (size_t i = 0; i < PERSIST_TOKEN_BYTES; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

struct session *tokens_find(const struct tokens *tokens, uint32_t uid, const uint8_t token[PERSIST_TOKEN_BYTES])
{
	struct session *session = tokens->buckets[bucket_of(token)];

	while (session && !(session->uid == uid && is_same(session->token, token)))
		session = session->bucket_next;
	return session;
}
