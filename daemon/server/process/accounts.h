/* Which account a uid counts as, for limits and turns: a subordinate uid (subuid(5)) counts as the uid that owns
 * it. Names, rights and grants go by the uid itself.
 *
 * Reads /etc/subuid and /etc/passwd, which are local files of root, and asks no name service: an answer must not
 * wait for another machine. Linking libsubid would add 13 shared libraries and 1.1 ms to the daemon's start. */
#ifndef SERVER_ACCOUNTS_H
#define SERVER_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Uids [first, last] count as `account`. */
struct accounts_range {
	uint32_t first, last, account;
};

/* Zero at first. */
struct accounts {
	const char *path;	       /* of the file with the ranges; NULL: each uid is an account */
	uint32_t admin;		       /* the daemon's uid */
	struct accounts_range *ranges; /* in the order of the file */
	size_t n;
	struct stat seen; /* the file, when it was read */
	bool has_failed;  /* it could not be read the last time */
};

/* `path`, `admin`: as above; the path outlives the accounts. Reads the file; one that is not there is empty. 0;
 * -errno: it is there and cannot be read, and the limits would be wrong. */
int accounts_open(struct accounts *accounts, const char *path, uint32_t admin);
void accounts_close(struct accounts *accounts);

/* Reads the file again if it is another one by now: one stat(), to be called every second or so. Where it cannot
 * be read, the ranges stay as they were. */
void accounts_refresh(struct accounts *accounts);

/* From the texts of subuid(5) and passwd(5). The ranges are the caller's, by free(); NULL: there is no memory. A line
 * that is not "owner:first:count" is skipped.
 *   - The owner is a number, or a name in `passwd`. The ranges of any other name, which a directory service may know,
 *     are one account of their own, under their first uid.
 *   - The ranges of uid 0 and of `admin` are one account of their own each, too: those two users share with nobody. */
size_t accounts_parse(const char *subuid, const char *passwd, uint32_t admin, struct accounts_range **ranges);

/* The account of a uid. `accounts` is a struct accounts: as limits_table has it. */
uint32_t accounts_of(const void *accounts, uint32_t uid);

#endif
