/* The permission to use AMX. */
#ifndef SERVER_TILES_H
#define SERVER_TILES_H

/* Asks for it and tells isa.h where it was given: not where the processor has no tiles, or the system does not let
 * (seccomp, an old kernel). Before any thread. */
void tiles_request(void);

#endif
