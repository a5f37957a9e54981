/* The instructions of amx.h, as assembly: of gcc 12's intrinsics ldtilecfg says that it reads 8 bytes, so that the
 * rest of the configuration is never written, and tileloadd that it reads none. */
#ifndef DEVICE_AMX_INSTRUCTIONS_H
#define DEVICE_AMX_INSTRUCTIONS_H

static inline void amx_ldtilecfg(const struct amx_config *config)
{
	__asm__ volatile("ldtilecfg %0" : : "m"(*config));
}

static inline void amx_tilerelease(void)
{
	__asm__ volatile("tilerelease");
}

#define AMX_TILEZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : :)
#define AMX_TILELOADD(tile, from, stride)                                                                         \
	__asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(from), "r"((int64_t)(stride)) : "memory")
#define AMX_TILESTORED(tile, to, stride)                                                                          \
	__asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(to), "r"((int64_t)(stride)) : "memory")
#define AMX_PRODUCT(name, c, a, b) __asm__ volatile(name " %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)
#define AMX_TDPBSSD(c, a, b) AMX_PRODUCT("tdpbssd", c, a, b)
#define AMX_TDPBSUD(c, a, b) AMX_PRODUCT("tdpbsud", c, a, b)
#define AMX_TDPBUSD(c, a, b) AMX_PRODUCT("tdpbusd", c, a, b)
#define AMX_TDPBUUD(c, a, b) AMX_PRODUCT("tdpbuud", c, a, b)

#endif
