/* Reads lines of squeue. Invariant: none can make more devices than a list has, or take longer than these; what is
 * in a line is a scheduler's, but names become addresses, and so are looked at. */
#include "client/ctl/core/devices/list.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_BYTES = 256, RANGE_DIGITS = 9 };

struct job {
	unsigned long id;
	char name[32];
	unsigned long uid;
	unsigned n_devices; /* on each of its nodes */
};

/* ---- gres:npu:sg2260:2,gres:gpu:1 ---- */

static unsigned count_of(const char *asked, size_t n)
{
	size_t last = n;
	while (last && asked[last - 1] != ':' && asked[last - 1] != '=')
		last--;
	char *end;
	unsigned long count = last && isdigit((unsigned char)asked[last]) ? strtoul(asked + last, &end, 10) : 1;
	if (count > 1 && end != asked + n) /* a type that begins with a digit */
		count = 1;
	return count > DEVICES_MAX ? DEVICES_MAX : (unsigned)count;
}

static unsigned count_devices(const char *asked)
{
	unsigned count = 0;
	for (size_t n; *asked; asked += n + (asked[n] == ',')) {
		n = strcspn(asked, ",");
		size_t prefix = !strncmp(asked, "gres:", 5) || !strncmp(asked, "gres/", 5) ? 5 : 0;
		if (!strncmp(asked + prefix, "npu", 3) && strchr(":=,", asked[prefix + 3]))
			count += count_of(asked + prefix, n - prefix);
	}
	return count < DEVICES_MAX ? count : DEVICES_MAX;
}

/* ---- one node ---- */

/* A name that ssh can take for nothing but a host, and a label as it is. */
static bool is_node(const char *node)
{
	for (const char *at = node; *at; at++)
		if (!isalnum((unsigned char)*at) && (!strchr("._-", *at) || at == node))
			return false;
	return *node;
}

static int add_node(struct devices *devices, const struct job *job, const struct slurm_here *here,
		    const char *node, struct npumem_error *error)
{
	char name[NODE_BYTES + 64], address[NODE_BYTES + 96], dot[16] = "";
	int status = 0;
	if (!is_node(node))
		return npumem_error_set(error, NPUMEM_INVALID, "squeue: \"%.80s\" is not a name of a node", node);
	for (unsigned i = 0; i < job->n_devices && !status; i++) {
		if (i)
			snprintf(dot, sizeof(dot), ".%u", i);
		snprintf(name, sizeof(name), "%s/%s%s", node, job->name, dot);
		snprintf(address, sizeof(address), "%s%s%s/run/npumem/job-%lu%s.sock",
			 strcmp(node, here->node) ? "ssh:" : "", strcmp(node, here->node) ? node : "",
			 strcmp(node, here->node) ? ":" : "", job->id, dot);
		status = devices_add(devices, name, address, error);
	}
	return status;
}

/* ---- n[1-3,07],m2 ---- */

struct expansion {
	struct devices *devices;
	const struct job *job;
	const struct slurm_here *here;
	struct npumem_error *error;
};

static int expand(const struct expansion *to, const char *prefix, const char *rest, size_t n);

/* One of a bracket's parts, 7 or 1-3 or 08-11, as the text between `prefix` and `rest`. */
static int expand_range(const struct expansion *to, const char *prefix, const char *part, size_t n,
			const char *rest, size_t n_rest)
{
	char *end, node[NODE_BYTES];
	unsigned long first = strtoul(part, &end, 10), last = first;
	int width = (int)(end - part), status = 0;
	bool good = isdigit((unsigned char)*part) && width <= RANGE_DIGITS;
	if (good && *end == '-') {
		const char *second = end + 1;
		last = strtoul(second, &end, 10);
		good = isdigit((unsigned char)*second) && end - second <= RANGE_DIGITS;
	}
	if (!good || end != part + n || last < first || last - first >= DEVICES_MAX)
		return npumem_error_set(to->error, NPUMEM_INVALID, "squeue: \"%.*s\" is not a range of nodes",
					n < 40 ? (int)n : 40, part);
	for (unsigned long i = first; i <= last && !status; i++) {
		if (snprintf(node, sizeof(node), "%s%0*lu", prefix, width, i) >= (int)sizeof(node))
			return npumem_error_set(to->error, NPUMEM_INVALID, "squeue: a node's name is too long");
		status = expand(to, node, rest, n_rest);
	}
	return status;
}

/* The nodes whose names begin with `prefix` and go on as the n bytes at `rest` say, which have no comma outside of
 * brackets. */
static int expand(const struct expansion *to, const char *prefix, const char *rest, size_t n)
{
	char node[NODE_BYTES];
	size_t plain = 0, length = strlen(prefix);
	while (plain < n && rest[plain] != '[')
		plain++;
	if (length + plain >= sizeof(node))
		return npumem_error_set(to->error, NPUMEM_INVALID, "squeue: a node's name is too long");
	memcpy(node, prefix, length);
	memcpy(node + length, rest, plain);
	node[length + plain] = 0;
	if (plain == n)
		return add_node(to->devices, to->job, to->here, node, to->error);
	const char *part = rest + plain + 1, *close = memchr(part, ']', n - plain - 1);
	int status = close ? 0 : npumem_error_set(to->error, NPUMEM_INVALID, "squeue: a list of nodes has no ]");
	while (!status) {
		size_t n_part = strcspn(part, ",]");
		status = expand_range(to, node, part, n_part, close + 1, (size_t)(rest + n - close - 1));
		if (part[n_part] == ']')
			break;
		part += n_part + 1;
	}
	return status;
}

/* ---- a line ---- */

int slurm_add(struct devices *devices, const char *line, const struct slurm_here *here, struct npumem_error *error)
{
	struct job job;
	int at = 0;
	if (sscanf(line, "%lu %31s %lu %n", &job.id, job.name, &job.uid, &at) != 3 || !at)
		return npumem_error_set(error, NPUMEM_INVALID, "squeue: %.200s", line);
	const char *nodes = line + at, *end = strpbrk(nodes, " \n");
	if (!end)
		return npumem_error_set(error, NPUMEM_INVALID, "squeue: %.200s", line);
	const char *asked = end + strspn(end, " ");
	struct expansion to = {devices, &job, here, error};
	job.n_devices = count_devices(asked);
	if (!job.n_devices || (here->uid && job.uid != here->uid))
		return 0;
	for (const char *node = nodes; node < end;) {
		size_t n = 0;
		for (bool within = false; node + n < end && (within || node[n] != ','); n++)
			within = node[n] == '[' || (within && node[n] != ']');
		int status = expand(&to, "", node, n);
		if (status)
			return status;
		node += n + 1;
	}
	return 0;
}
