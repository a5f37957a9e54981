/* Owns nothing. Words are in the machine's byte order, which is little-endian in the paper. */
#include "daemon/store/log/siphash.h"

#include <string.h>

struct sip {
	uint64_t a, b, c, d;
};

static inline uint64_t turn(uint64_t word, unsigned bits)
{
	return word << bits | word >> (64 - bits);
}

static inline void mix(struct sip *sip, unsigned rounds)
{
	while (rounds--) {
		sip->a += sip->b;
		sip->c += sip->d;
		sip->b = turn(sip->b, 13) ^ sip->a;
		sip->d = turn(sip->d, 16) ^ sip->c;
		sip->a = turn(sip->a, 32) + sip->d;
		sip->c += sip->b;
		sip->b = turn(sip->b, 17) ^ sip->c;
		sip->d = turn(sip->d, 21) ^ sip->a;
		sip->c = turn(sip->c, 32);
	}
}

static inline void add(struct sip *sip, uint64_t word)
{
	sip->d ^= word;
	mix(sip, 1);
	sip->a ^= word;
}

uint64_t siphash(const uint64_t key[2], const void *bytes, size_t n)
{
	struct sip sip = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
			  key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
	const uint8_t *at = bytes, *end = at + n / 8 * 8;
	uint64_t word;

	for (; at < end; at += 8) {
		memcpy(&word, at, sizeof(word));
		add(&sip, word);
	}
	word = 0;
	memcpy(&word, at, n % 8);
	add(&sip, word | (uint64_t)n << 56);
	sip.c ^= 0xff;
	mix(&sip, 3);
	return sip.a ^ sip.b ^ sip.c ^ sip.d;
}
