/* Where tests look on: every system call can be failed, and every store into a mapped file stopped after. */
#ifndef STORE_HOOKS_H
#define STORE_HOOKS_H

struct store_hooks {
	/* Before each system call, by its name: an errno to fail with instead of calling; 0. */
	int (*fail)(void *ctx, const char *call);
	/* After each store of up to 8 bytes into a mapped file. May leave by longjmp: store_close(store, false) is
	 * then all that may follow. */
	void (*stored)(void *ctx);
	/* After a file went to the disk. */
	void (*synced)(void *ctx, int fd);
	void *ctx;
};

#endif
