/* A list of devices. Invariant: no two have one name, and every name is printable, as it becomes a label and a
 * cell. */
#include "client/ctl/core/devices/list.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/memory.h"

static bool is_name(const char *name)
{
	size_t n = strlen(name);
	for (size_t i = 0; i < n; i++)
		if (!isgraph((unsigned char)name[i]))
			return false;
	return n && n < DEVICES_NAME_BYTES;
}

static int check(const struct devices *devices, const char *name, const char *address, struct npumem_error *error)
{
	if (!is_name(name))
		return npumem_error_set(error, NPUMEM_INVALID,
					"\"%.80s\" is not a name of a device: 1 to %d letters, digits and signs",
					name, DEVICES_NAME_BYTES - 1);
	if (!*address || strlen(address) >= DEVICES_ADDRESS_BYTES || !strncmp(address, "spawn:", 6))
		return npumem_error_set(error, NPUMEM_INVALID, "%s: \"%.80s\" is not an address of a daemon", name,
					address);
	for (unsigned i = 0; i < devices->n; i++)
		if (!strcmp(devices->list[i].name, name))
			return npumem_error_set(error, NPUMEM_INVALID, "there are two devices \"%s\"", name);
	if (devices->n == DEVICES_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "more than %d devices", DEVICES_MAX);
	return 0;
}

int devices_add(struct devices *devices, const char *name, const char *address, struct npumem_error *error)
{
	int status = check(devices, name, address, error);
	if (status)
		return status;
	struct device *device = memory_grow(&devices->list, devices->n++, sizeof(*device));
	strcpy(device->name, name);
	strcpy(device->address, address);
	return 0;
}

static int add_line(struct devices *devices, char *line, struct npumem_error *error)
{
	static const char space[] = " \t\r\n\v\f";
	char *name = line + strspn(line, space);
	if (!*name || *name == '#')
		return 0;
	char *end = name + strcspn(name, space), *address = end + strspn(end, space);
	*end = 0;
	for (size_t n = strlen(address); n && strchr(space, address[n - 1]); n--)
		address[n - 1] = 0;
	return devices_add(devices, name, address, error);
}

int devices_read(struct devices *devices, const char *path, struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	unsigned number = 0;
	int status = 0;
	while (file && !status && getline(&line, &room, file) >= 0) {
		number++;
		status = add_line(devices, line, &why);
	}
	int err = errno;
	bool bad = !file || ferror(file);
	free(line);
	if (file)
		fclose(file);
	if (status)
		return npumem_error_set(error, status, "%.200s:%u: %.200s", path, number, why.message);
	if (bad)
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path, strerror(err));
	if (!devices->n)
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s names no device", path);
	return 0;
}

void devices_deinit(struct devices *devices)
{
	memory_free(devices->list);
	*devices = (struct devices){.n = 0};
}
