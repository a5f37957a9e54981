/* The command line to struct options: a row per option, and a function that takes its value.
 * Touches no file and no memory but what it is given. */
#include "daemon/server/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct parse {
	struct options *options;
	const char *option, *value;
	char *error;
	bool chip, size; /* which of the two ways to describe the device was used */
};

static bool refuse(struct parse *parse, const char *expected)
{
	snprintf(parse->error, OPTIONS_ERROR_BYTES, "--%s %.64s: %s", parse->option, parse->value, expected);
	return false;
}

static bool parse_number(const char *text, int base, int64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoll(text, &end, base);
	return !errno && end != text && !*end && *text != ' ';
}

static bool set_socket(struct parse *parse)
{
	size_t length = strlen(parse->value);

	if (length < 1 || length >= OPTIONS_PATH_BYTES)
		return refuse(parse, "a socket path has 1 to 107 bytes");
	memcpy(parse->options->socket, parse->value, length + 1);
	return true;
}

static bool set_fd(struct parse *parse)
{
	int64_t fd;

	if (!parse_number(parse->value, 10, &fd) || fd < 0 || fd > INT32_MAX)
		return refuse(parse, "not a file descriptor");
	parse->options->fd = (int)fd;
	return true;
}

static bool set_mode(struct parse *parse)
{
	int64_t mode;

	if (!parse_number(parse->value, 8, &mode) || mode < 0 || mode > 0777)
		return refuse(parse, "a mode is 0 to 0777, in octal");
	parse->options->mode = (mode_t)mode;
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

static bool set_size(struct parse *parse, int64_t *member)
{
	parse->size = true;
	return parse_number(parse->value, 10, member) || refuse(parse, "not a number");
}

static bool set_npus(struct parse *parse)
{
	return set_size(parse, &parse->options->device.geometry.n_npus);
}

static bool set_npu_bytes(struct parse *parse)
{
	return set_size(parse, &parse->options->device.geometry.npu_bytes);
}

static bool set_banks(struct parse *parse)
{
	return set_size(parse, &parse->options->device.geometry.n_banks);
}

static bool set_rounding(struct parse *parse)
{
	parse->options->device.rounding = npumem_rounding_parse(parse->value);
	return parse->options->device.rounding || refuse(parse, "one of convergent, up, nearest");
}

static bool set_uninitialized(struct parse *parse)
{
	parse->options->device.uninitialized = npumem_uninitialized_parse(parse->value);
	return parse->options->device.uninitialized || refuse(parse, "one of refuse, warn, allow");
}

static bool set_allow_unchecked(struct parse *parse)
{
	parse->options->device.allow_unchecked = true;
	return true;
}

static bool set_pack_bytes(struct parse *parse)
{
	int64_t bytes;

	if (!parse_number(parse->value, 10, &bytes) || bytes < 0)
		return refuse(parse, "not a number of bytes");
	parse->options->device.pack_bytes = (uint64_t)bytes;
	return true;
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

static bool set_log(struct parse *parse)
{
	int level = log_level_parse(parse->value);

	if (!level)
		return refuse(parse, "one of error, warning, info, debug");
	parse->options->log = (enum log_level)level;
	return true;
}

static bool set_seconds(struct parse *parse, int64_t *seconds)
{
	return (parse_number(parse->value, 10, seconds) && *seconds >= 1 && *seconds <= 86400) ||
	       refuse(parse, "1 to 86400 seconds");
}

static bool set_frame_seconds(struct parse *parse)
{
	return set_seconds(parse, &parse->options->frame_seconds);
}

static bool set_drain_seconds(struct parse *parse)
{
	return set_seconds(parse, &parse->options->drain_seconds);
}

static bool set_stop_seconds(struct parse *parse)
{
	return set_seconds(parse, &parse->options->stop_seconds);
}

static bool set_spin(struct parse *parse)
{
	int64_t *us = &parse->options->spin_us;

	return (parse_number(parse->value, 10, us) && *us >= 0 && *us <= 1000) ||
	       refuse(parse, "0 to 1000 microseconds");
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
		return refuse(
			parse,
			"KEY=VALUE, with KEY one of sessions, tensors, device_bytes, requests, request_bytes, "
			"waiting, followers, segment_bytes, descriptors");
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

static bool set_share_device(struct parse *parse)
{
	parse->options->share_device = true;
	return true;
}

static const struct row {
	const char *name, *value;
	bool (*set)(struct parse *parse);
	const char *help;
} rows[] = {
	{"socket", "PATH", set_socket,
	 "listen here ($XDG_RUNTIME_DIR/npumem.sock, for root /run/npumem/npumem.sock)"},
	{"mode", "OCTAL", set_mode, "of the socket file (0666: peers are told apart by their uid)"},
	{"fd", "N", set_fd, "serve this connected socket instead, and exit when it closes"},
	{"chip", "NAME", set_chip, "a real part: bm1684 (64 NPUs of 512 KiB), bm1684x, bm1690, sg2260, sg2380"},
	{"npus", "X", set_npus, "1 to 1024"},
	{"npu-bytes", "S", set_npu_bytes, "of each NPU, a multiple of 128 up to 2^30"},
	{"banks", "B", set_banks, "of each NPU"},
	{"rounding", "MODE", set_rounding, "convergent, up, nearest"},
	{"uninitialized", "POLICY", set_uninitialized,
	 "refuse, warn, allow: what uses bytes that were never written"},
	{"allow-unchecked-reuse", NULL, set_allow_unchecked, "tensors may be placed with --reuse unchecked"},
	{"isa", "NAME", set_isa,
	 "kernels use no more than scalar, avx2, avx512vnni, amx_int8 (the best there is)"},
	{"pack-bytes", "N", set_pack_bytes,
	 "host memory for packed weights that are kept for the next run (67108864)"},
	{"limit", "KEY=VALUE", set_limit,
	 "what a uid may have: sessions, tensors, device_bytes, requests, request_bytes, waiting, followers, "
	 "segment_bytes, descriptors"},
	{"limit-uid", "UID:KEY=VALUE", set_limit_uid, "the same for one uid"},
	{"share-device", NULL, set_share_device,
	 "no uid gets more than half of the device bytes that the others have left"},
	{"frame-seconds", "SECONDS", set_frame_seconds,
	 "after which a client is dropped whose request has not come whole, unless it comes at 256 KiB/s (30)"},
	{"drain-seconds", "SECONDS", set_drain_seconds,
	 "after which a client is dropped that does not read its replies, unless at 256 KiB/s (30)"},
	{"reply-timeout", "SECONDS", set_drain_seconds, "the same as --drain-seconds"},
	{"stop-seconds", "SECONDS", set_stop_seconds, "that what runs at a SIGTERM may take to end (60)"},
	{"spin-us", "N", set_spin, "ask the socket again for so long, where it pays, before sleeping (0)"},
	{"log", "LEVEL", set_log, "error, warning, info, debug"},
	{"version", NULL, NULL, NULL},
	{"help", NULL, NULL, NULL},
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
				    .stop_seconds = 60,
				    .device.pack_bytes = 64 << 20};
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
		parse.option = rows[index].name;
		parse.value = optarg;
		if (strcmp(parse.option, "help") == 0)
			return print_help();
		if (strcmp(parse.option, "version") == 0) {
			printf("npumemd %s\n", NPUMEM_VERSION);
			return OPTIONS_DONE;
		}
		if (!rows[index].set(&parse))
			return OPTIONS_BAD;
	}
	if (optind < argc) {
		snprintf(error, OPTIONS_ERROR_BYTES, "%.64s: no such argument", argv[optind]);
		return OPTIONS_BAD;
	}
	return finish(&parse);
}
