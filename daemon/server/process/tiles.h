/* The permission to use AMX. */
#ifndef SERVER_TILES_H
#define SERVER_TILES_H

/* Requests it and calls isa_permit_tiles if it was granted. It is not if the processor has no tiles, or the system
 * refuses (seccomp, an old kernel). Before any thread. */
void tiles_request(void);

#endif
