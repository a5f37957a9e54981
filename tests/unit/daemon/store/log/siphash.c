/* SipHash-1-3: sums of the key and the texts that the reference implementation has for SipHash-2-4. */
#include "daemon/store/log/siphash.h"
#include "tests/support/test.h"

TEST(as_published)
{
	static const struct {
		size_t n;
		uint64_t sum;
	} published[] = {
		{0, 0xabac0158050fc4dc}, {1, 0xc9f49bf37d57ca93},  {7, 0xd3927d989bb11140},
		{8, 0x369095118d299a8e}, {15, 0xd320d86d2a519956}, {63, 0x9d199062b7bbb3a8},
	};
	const uint64_t key[] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
	uint8_t bytes[64];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (unsigned i = 0; i < sizeof(published) / sizeof(*published); i++)
		ck_assert_uint_eq(siphash(key, bytes, published[i].n), published[i].sum);
}
