/* Hooks for tests: every system call can be made to fail, and a test can stop after every store into a mapped
 * file. */
#ifndef STORE_HOOKS_H
#define STORE_HOOKS_H

struct store_hooks {
	/* Before each system call, with its name. Returns 0, or the errno with which it fails instead. */
	int (*fail)(void *ctx, const char *call);
	/* After each store of up to 8 bytes into a mapped file. May leave by longjmp; after that only
	 * store_close(store, false) may be called. */
	void (*stored)(void *ctx);
	/* After a file was synced. */
	void (*synced)(void *ctx, int fd);
	void *ctx;
};

#endif
