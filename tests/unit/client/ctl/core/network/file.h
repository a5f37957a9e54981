/* A network from text, through a file of its own. */
#ifndef TESTS_UNIT_CLIENT_CTL_NETWORK_FILE_H
#define TESTS_UNIT_CLIENT_CTL_NETWORK_FILE_H

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/core/network/network.h"

/* network_load; the file's name is left out of the error's message. */
static inline int file_load(const char *text, struct network *network, struct npumem_error *error)
{
	char path[] = "/tmp/npumem-network-XXXXXX";
	int fd = mkstemp(path);
	size_t bytes = strlen(text);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, bytes), (ssize_t)bytes);
	close(fd);
	npumem_error_clear(error);
	int status = network_load(path, network, error);
	unlink(path);
	if (status) {
		size_t prefix = strlen(path) + 2;
		ck_assert_msg(!strncmp(error->message, path, prefix - 2), "%s", error->message);
		memmove(error->message, error->message + prefix, strlen(error->message + prefix) + 1);
	}
	return status;
}

static inline void file_loads(const char *text, struct network *network)
{
	struct npumem_error error;
	ck_assert_msg(!file_load(text, network, &error), "%s", error.message);
}

#endif
