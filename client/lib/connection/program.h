/* Which program a private daemon is. */
#ifndef CLIENT_LIB_PROGRAM_H
#define CLIENT_LIB_PROGRAM_H

enum { PROGRAM_PATH_BYTES = 4096 };

struct program {
	char path[PROGRAM_PATH_BYTES]; /* a file, or a name to be looked for in $PATH */
	const char *name;	       /* its argv[0] */
};

/* $NPUMEMD; else npumemd where this library was installed with it, wherever that is now; else in $PATH; else where
 * the build installs it. Of a program with more rights than its caller's the last one only. A static npumemctl has
 * its daemon inside. */
void program_find(struct program *program);

#endif
