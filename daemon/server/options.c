/* The command line to struct options: a row per option, which says where its value goes and what it may be.
 * Touches no file and no memory but what it is given. */
#include "daemon/server/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_KEYS                                                                                                \
	"sessions, tensors, device_bytes, requests, request_bytes, waiting, followers, segment_bytes, "           \
	"descriptors"

struct parse {
	struct options *options;
	const struct row *row;
	const char *value;
	char *error;
	bool chip, size; /* which of the two ways to describe the device was used */
};

/* An option: a number of a range, one of some names, a flag, or what `set` makes of it. */
struct row {
	const char *name, *value;
	bool (*set)(struct parse *parse);
	size_t off; /* where it goes in struct options: an int64_t, an int or a bool */
	int64_t least, most;
	const char *expected;
	int (*choose)(const char *name); /* 0: there is none of that name */
	const char *help;
};

static bool refuse(struct parse *parse, const char *expected)
{
	snprintf(parse->error, OPTIONS_ERROR_BYTES, "--%s %.64s: %s", parse->row->name, parse->value, expected);
	return false;
}

static void *member(struct parse *parse)
{
	return (char *)parse->options + parse->row->off;
}

static bool parse_number(const char *text, int base, int64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoll(text, &end, base);
	return !errno && end != text && !*end && *text != ' ';
}

static bool set_number_of(struct parse *parse, int base)
{
	int64_t *number = member(parse);

	return (parse_number(parse->value, base, number) && *number >= parse->row->least &&
		*number <= parse->row->most) ||
	       refuse(parse, parse->row->expected);
}

static bool set_number(struct parse *parse)
{
	return set_number_of(parse, 10);
}

static bool set_mode(struct parse *parse)
{
	return set_number_of(parse, 8);
}

static bool set_size(struct parse *parse)
{
	parse->size = true;
	return set_number_of(parse, 10);
}

static bool set_choice(struct parse *parse)
{
	int *choice = member(parse);

	*choice = parse->row->choose(parse->value);
	return *choice || refuse(parse, parse->row->expected);
}

static bool set_flag(struct parse *parse)
{
	*(bool *)member(parse) = true;
	return true;
}

static bool set_socket(struct parse *parse)
{
	size_t length = strlen(parse->value);

	if (length < 1 || length >= OPTIONS_PATH_BYTES)
		return refuse(parse, "a socket path has 1 to 107 bytes");
	memcpy(parse->options->socket, parse->value, length + 1);
	return true;
}

static bool set_chip(struct parse *parse)
{
	parse->chip = true;
	if (npumem_geometry_chip(parse->value, &parse->options->device.geometry))
		return true;
	return refuse(parse, "one of "
#define CHIP(name, npus, bytes, banks, eu) name " "
#include <npumem/chips.def>
#undef CHIP
			     "is known");
}

static bool set_isa(struct parse *parse)
{
	enum isa isa = isa_parse(parse->value);

	if (isa == ISA_ANY)
		return refuse(parse, "one of "
#define ISA(name, NAME, number) #name " "
#include "daemon/device/isa.def"
#undef ISA
				     "is known");
	if (isa > isa_best())
		return refuse(parse, "this processor does not have it");
	parse->options->device.isa = isa;
	return true;
}

/* KEY=VALUE, from `text` on. */
static bool parse_limit(struct parse *parse, const char *text, int *key, uint64_t *most)
{
	const char *value = strchr(text, '=');
	char name[32] = "";
	int64_t number;

	if (value && (size_t)(value - text) < sizeof(name))
		memcpy(name, text, (size_t)(value - text));
	*key = limits_parse_key(name);
	if (*key < 0)
		return refuse(parse, "KEY=VALUE, with KEY one of " LIMIT_KEYS);
	if (!parse_number(value + 1, 10, &number) || number < 1)
		return refuse(parse, "a limit is a number above 0");
	*most = (uint64_t)number;
	return true;
}

static bool set_limit(struct parse *parse)
{
	uint64_t most;
	int key;

	if (!parse_limit(parse, parse->value, &key, &most))
		return false;
	parse->options->limits[key] = most;
	return true;
}

static bool set_limit_uid(struct parse *parse)
{
	struct options *options = parse->options;
	struct options_own_limit *own = &options->own_limits[options->n_own_limits];
	const char *limit = strchr(parse->value, ':');
	char uid[16] = "";
	int64_t number;

	if (limit && (size_t)(limit - parse->value) < sizeof(uid))
		memcpy(uid, parse->value, (size_t)(limit - parse->value));
	if (!parse_number(uid, 10, &number) || number < 0 || number > UINT32_MAX)
		return refuse(parse, "UID:KEY=VALUE");
	if (options->n_own_limits == OPTIONS_OWN_LIMITS_MAX)
		return refuse(parse, "no more than 64 of these are possible");
	if (!parse_limit(parse, limit + 1, &own->key, &own->most))
		return false;
	own->uid = (uint32_t)number;
	options->n_own_limits++;
	return true;
}

#define NUMBER(name, value, set, member, least, most, expected, text)                                             \
	{                                                                                                         \
		name, value, set, offsetof(struct options, member), least, most, expected, NULL, text             \
	}
#define SIZE(name, value, member, text)                                                                           \
	NUMBER(name, value, set_size, device.geometry.member, INT64_MIN, INT64_MAX, "not a number", text)
#define SECONDS(name, member, text)                                                                               \
	NUMBER(name, "SECONDS", set_number, member, 1, 86400, "1 to 86400 seconds", text)
#define CHOICE(name, value, member, choose, names, text)                                                          \
	{                                                                                                         \
		name, value, set_choice, offsetof(struct options, member), 0, 0, "one of " names, choose,         \
			names text                                                                                \
	}
#define FLAG(name, member, text) NUMBER(name, NULL, set_flag, member, 0, 0, NULL, text)
#define OTHER(name, value, set, text)                                                                             \
	{                                                                                                         \
		name, value, set, 0, 0, 0, NULL, NULL, text                                                       \
	}

static const struct row rows[] = {
	OTHER("socket", "PATH", set_socket,
	      "listen here ($XDG_RUNTIME_DIR/npumem.sock, for root /run/npumem/npumem.sock)"),
	NUMBER("mode", "OCTAL", set_mode, mode, 0, 0777, "a mode is 0 to 0777, in octal",
	       "of the socket file (0666: peers are told apart by their uid)"),
	NUMBER("fd", "N", set_number, fd, 0, INT32_MAX, "not a file descriptor",
	       "serve this connected socket instead, and exit when it closes"),
	OTHER("chip", "NAME", set_chip,
	      "a real part: bm1684 (64 NPUs of 512 KiB), bm1684x, bm1690, sg2260, sg2380"),
	SIZE("npus", "X", n_npus, "1 to 1024"),
	SIZE("npu-bytes", "S", npu_bytes, "of each NPU, a multiple of 128 up to 2^30"),
	SIZE("banks", "B", n_banks, "of each NPU"),
	CHOICE("rounding", "MODE", device.rounding, npumem_rounding_parse, "convergent, up, nearest", ""),
	CHOICE("uninitialized", "POLICY", device.uninitialized, npumem_uninitialized_parse, "refuse, warn, allow",
	       ": what uses bytes that were never written"),
	FLAG("allow-unchecked-reuse", device.allow_unchecked, "tensors may be placed with --reuse unchecked"),
	OTHER("isa", "NAME", set_isa,
	      "kernels use no more than scalar, avx2, avx512vnni, amx_int8 (the best there is)"),
	OTHER("limit", "KEY=VALUE", set_limit, "what a uid may have: " LIMIT_KEYS),
	OTHER("limit-uid", "UID:KEY=VALUE", set_limit_uid, "the same for one uid"),
	FLAG("share-device", share_device,
	     "no uid gets more than half of the device bytes that the others have left"),
	SECONDS("frame-seconds", frame_seconds,
		"after which a client is dropped whose request has not come whole, unless it comes at 256 KiB/s "
		"(30)"),
	SECONDS("drain-seconds", drain_seconds,
		"after which a client is dropped that does not read its replies, unless at 256 KiB/s (30)"),
	SECONDS("reply-timeout", drain_seconds, "the same as --drain-seconds"),
	SECONDS("stop-seconds", stop_seconds, "that what runs at a SIGTERM may take to end (60)"),
	NUMBER("spin-us", "N", set_number, spin_us, 0, 1000, "0 to 1000 microseconds",
	       "ask the socket again for so long, where it pays, before sleeping (0)"),
	CHOICE("log", "LEVEL", log, log_level_parse, "error, warning, info, debug", ""),
	OTHER("version", NULL, NULL, NULL),
	OTHER("help", NULL, NULL, NULL),
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static enum options_result print_help(void)
{
	printf("usage: npumemd [OPTION]...\n"
	       "Owns the simulated local memory of an NPU array and serves it on a Unix socket.\n\n");
	for (unsigned i = 0; i < N_ROWS; i++) {
		char option[40];

		snprintf(option, sizeof(option), "--%s%s%s", rows[i].name, rows[i].value ? " " : "",
			 rows[i].value ? rows[i].value : "");
		printf("  %-24s%s%s\n", option, rows[i].help ? " " : "", rows[i].help ? rows[i].help : "");
	}
	return OPTIONS_DONE;
}

static bool default_socket(struct options *options, char *error)
{
	const char *directory = getenv("XDG_RUNTIME_DIR");
	int length;

	if (geteuid() == 0 || !directory || directory[0] != '/')
		directory = "/run/npumem";
	length = snprintf(options->socket, sizeof(options->socket), "%s/npumem.sock", directory);
	if (length < (int)sizeof(options->socket))
		return true;
	snprintf(error, OPTIONS_ERROR_BYTES, "XDG_RUNTIME_DIR is too long for a socket path: use --socket");
	return false;
}

static enum options_result finish(struct parse *parse)
{
	struct options *options = parse->options;
	struct npumem_error error;

	if (parse->chip && parse->size) {
		snprintf(parse->error, OPTIONS_ERROR_BYTES, "--chip goes without --npus, --npu-bytes and --banks");
		return OPTIONS_BAD;
	}
	npumem_error_clear(&error);
	if (npumem_geometry_check(&options->device.geometry, &error)) {
		snprintf(parse->error, OPTIONS_ERROR_BYTES, "%.240s", error.message);
		return OPTIONS_BAD;
	}
	if (options->fd >= 0 && options->socket[0]) {
		snprintf(parse->error, OPTIONS_ERROR_BYTES, "--fd goes without --socket");
		return OPTIONS_BAD;
	}
	if (options->fd < 0 && !options->socket[0] && !default_socket(options, parse->error))
		return OPTIONS_BAD;
	return OPTIONS_RUN;
}

enum options_result options_parse(int argc, char **argv, struct options *options, char error[OPTIONS_ERROR_BYTES])
{
	struct option table[N_ROWS + 1] = {{0}};
	struct parse parse = {.options = options, .error = error};
	int index, found;

	*options = (struct options){.fd = -1,
				    .mode = 0666,
				    .log = LOG_LEVEL_INFO,
				    .frame_seconds = 30,
				    .drain_seconds = 30,
				    .stop_seconds = 60};
	npumem_geometry_default(&options->device.geometry);
	for (unsigned i = 0; i < N_ROWS; i++)
		table[i] = (struct option){rows[i].name, rows[i].value ? required_argument : no_argument, NULL, 0};
	opterr = 0;
	while ((found = getopt_long(argc, argv, ":", table, &index)) != -1) {
		if (found == ':' || found == '?') {
			snprintf(error, OPTIONS_ERROR_BYTES, "%.64s: %s", argv[optind - 1],
				 found == ':' ? "needs a value" : "no such option");
			return OPTIONS_BAD;
		}
		parse.row = &rows[index];
		parse.value = optarg;
		if (strcmp(parse.row->name, "help") == 0)
			return print_help();
		if (strcmp(parse.row->name, "version") == 0) {
			printf("npumemd %s\n", NPUMEM_VERSION);
			return OPTIONS_DONE;
		}
		if (!parse.row->set(&parse))
			return OPTIONS_BAD;
	}
	if (optind < argc) {
		snprintf(error, OPTIONS_ERROR_BYTES, "%.64s: no such argument", argv[optind]);
		return OPTIONS_BAD;
	}
	return finish(&parse);
}
