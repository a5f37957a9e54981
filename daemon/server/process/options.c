/* The command line to struct options: a row per option, and a function that takes its value.
 * Touches no file and no memory but what it is given. */
#include "daemon/server/process/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct parse;

struct row {
	const char *name, *value, *help;
	bool (*set)(struct parse *parse);
	size_t at; /* of its member; of an int64_t, an int or a bool, as `set` takes it */
	int base;
	int64_t low, high;
	int (*choose)(const char *name); /* 0: there is no such name */
	const char *expected;
};

struct parse {
	struct options *options;
	const struct row *row;
	const char *value;
	char *error;
	bool chip, size; /* which of the two ways to describe the device was used */
};

static bool refuse(struct parse *parse, const char *expected)
{
	snprintf(parse->error, OPTIONS_ERROR_BYTES, "--%s %.64s: %s", parse->row->name, parse->value, expected);
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

static void *member(const struct parse *parse)
{
	return (char *)parse->options + parse->row->at;
}

static bool set_flag(struct parse *parse)
{
	*(bool *)member(parse) = true;
	return true;
}

/* The command line outlives the options. */
static bool set_text(struct parse *parse)
{
	*(const char **)member(parse) = parse->value;
	return parse->value[0] || refuse(parse, parse->row->expected);
}

static bool set_number(struct parse *parse)
{
	const struct row *row = parse->row;
	int64_t *number = member(parse);

	return (parse_number(parse->value, row->base, number) && *number >= row->low && *number <= row->high) ||
	       refuse(parse, row->expected);
}

static bool set_bytes(struct parse *parse)
{
	return npumem_bytes_parse(parse->value, member(parse)) || refuse(parse, parse->row->expected);
}

/* Of the device, and checked with all that there is of it. */
static bool set_npu_bytes(struct parse *parse)
{
	parse->size = true;
	return set_bytes(parse);
}

static bool set_size(struct parse *parse)
{
	parse->size = true;
	return set_number(parse);
}

static bool set_choice(struct parse *parse)
{
	int *choice = member(parse);

	*choice = parse->row->choose(parse->value);
	if (*choice)
		return true;
	char expected[96];
	snprintf(expected, sizeof(expected), "must be %s", parse->row->expected);
	return refuse(parse, expected);
}

static bool set_chip(struct parse *parse)
{
	parse->chip = true;
	if (npumem_geometry_chip(parse->value, &parse->options->device.geometry))
		return true;
	return refuse(parse, "must be one of"
#define CHIP(name, npus, bytes, banks, eu) " " name
#include <npumem/chips.def>
#undef CHIP
	);
}

static bool set_isa(struct parse *parse)
{
	enum isa isa = isa_parse(parse->value);

	if (isa == ISA_ANY)
		return refuse(parse, "must be one of"
#define ISA(name, NAME, number, includes) " " #name
#include "daemon/device/isa.def"
#undef ISA
		);
	if (!isa_runs(isa)) {
		char best[64];

		snprintf(best, sizeof(best), "the best that there is here is %s", isa_name(isa_best()));
		return refuse(parse, best);
	}
	parse->options->device.isa = isa;
	return true;
}

static const char limit_keys[] = "must be KEY=VALUE, with KEY one of"
#define LIMIT(KEY, name, of_bytes, ordinary, all) " " #name
#include "daemon/service/limits.def"
#undef LIMIT
	;

/* KEY=VALUE, from `text` on. */
static bool parse_limit(struct parse *parse, const char *text, int *key, uint64_t *most)
{
	const char *value = strchr(text, '=');
	char name[32] = "";
	int64_t number;
	bool is_read;

	if (value && (size_t)(value - text) < sizeof(name))
		memcpy(name, text, (size_t)(value - text));
	*key = limits_parse_key(name);
	if (*key < 0)
		return refuse(parse, limit_keys);
	is_read = limits_is_of_bytes(*key) ? npumem_bytes_parse(value + 1, &number)
					   : parse_number(value + 1, 10, &number);
	if (!is_read || number < 1)
		return refuse(parse, limits_is_of_bytes(*key)
					     ? "a limit is a number of bytes above 0, as 65536 or 64K"
					     : "a limit is a number above 0");
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

#define AT(member) .at = offsetof(struct options, member)
#define NUMBER(member, least, most, what)                                                                         \
	.set = set_number, AT(member), .base = 10, .low = least, .high = most, .expected = what
#define SECONDS(member) NUMBER(member, 1, 86400, "1 to 86400 seconds")
#define SIZE(member)                                                                                              \
	.set = set_size, AT(device.geometry.member), .base = 10, .low = INT64_MIN, .high = INT64_MAX,             \
	.expected = "not a number"
#define BYTES(member, setter) .set = setter, AT(member), .expected = "not a number of bytes, as 65536 or 64K"
#define CHOICE(member, function, what)                                                                            \
	.set = set_choice, AT(member), .choose = function, .expected = "one of " what
#define FLAG(member) .set = set_flag, AT(member)

static const struct row rows[] = {
	{"socket", "PATH",
	 "listen here; if only the last directory is missing, it is made with mode 0755 "
	 "($XDG_RUNTIME_DIR/npumem.sock, for root /run/npumem/npumem.sock)",
	 .set = set_socket},
	{"users", "GROUP", "only members of this group can connect: it has the socket file, with mode 0660",
	 .set = set_text, AT(users), .expected = "a group has a name"},
	{"mode", "OCTAL",
	 "permissions of the socket file (0666, as the daemon distinguishes peers by uid; with --users 0660)",
	 .set = set_number, AT(mode), .base = 8, .low = 0, .high = 0777,
	 .expected = "a mode is 0 to 0777, in octal"},
	{"fd", "N",
	 "serve this socket instead, a connected or a listening one; end with the parent process, or when the "
	 "connected one closes",
	 NUMBER(fd, 0, INT32_MAX, "not a file descriptor")},
	{"background", NULL,
	 "return when the socket listens, and continue in the background; npumemctl shutdown ends the daemon",
	 FLAG(background)},
	{"chip", "NAME", "a real part: bm1684 (64 NPUs of 512 KiB; the default), bm1684x, bm1690, sg2260, sg2380",
	 .set = set_chip},
	{"npus", "X", "number of NPUs, 1 to 1024 (64)", SIZE(n_npus)},
	{"npu-bytes", "S", "bytes of each NPU, a multiple of 128 up to 2^30, as 524288 or 512KiB (512K)",
	 BYTES(device.geometry.npu_bytes, set_npu_bytes)},
	{"banks", "B", "banks of each NPU (8)", SIZE(n_banks)},
	{"rounding", "MODE", "default of kernels: convergent, up, nearest (convergent)",
	 CHOICE(device.rounding, npumem_rounding_parse, "convergent, up, nearest")},
	{"uninitialized", "POLICY",
	 "refuse, warn, allow: requests that read bytes that were never written (refuse)",
	 CHOICE(device.uninitialized, npumem_uninitialized_parse, "refuse, warn, allow")},
	{"allow-unchecked-reuse", NULL, "tensors may be placed with --reuse unchecked",
	 FLAG(device.allow_unchecked)},
	{"isa", "NAME",
	 "largest instruction set of kernels: scalar, avx2, avx512vnni, amx_int8; neon, neon_dot (the best of the "
	 "processor)",
	 .set = set_isa},
	{"pack-bytes", "N", "host memory for weights in packed form, kept for the next run (64M)",
	 BYTES(device.pack_bytes, set_bytes)},
	{"limit", "KEY=VALUE", "limit of each user; bytes also as 64K, 8M or 1G. KEY is one of"
#define LIMIT(KEY, name, of_bytes, ordinary, all) " " #name
#include "daemon/service/limits.def"
#undef LIMIT
	 ,
	 .set = set_limit},
	{"limit-uid", "UID:KEY=VALUE", "the same for one uid", .set = set_limit_uid},
	{"subuid", "FILE", "subordinate uids in this file count as the uid that owns them (/etc/subuid)",
	 .set = set_text, AT(subuid), .expected = "a file has a name"},
	{"share-device", NULL, "a uid gets at most half of the device bytes that others have left free",
	 FLAG(share_device)},
	{"refuse-holes", NULL, "refuse shared memory with holes, also if no cgroup limits the daemon's memory",
	 FLAG(refuse_holes)},
	{"allow-any-pins", NULL,
	 "tensors that cannot be moved may lie anywhere, also where each user's place would be (npumem(7))",
	 FLAG(allow_any_pins)},
	{"compact-percent", "N", "share of the time that a uid may stop others (5; 100: no bound)",
	 NUMBER(compact_percent, 1, 100, "1 to 100 percent")},
	{"frame-seconds", "SECONDS",
	 "drop a client after this time if its request is incomplete and comes slower than 256 KiB/s (30)",
	 SECONDS(frame_seconds)},
	{"drain-seconds", "SECONDS",
	 "drop a client after this time if it reads its replies slower than 256 KiB/s (30)",
	 SECONDS(drain_seconds)},
	{"reply-timeout", "SECONDS", "the same as --drain-seconds", SECONDS(drain_seconds)},
	{"stop-seconds", "SECONDS", "time that running requests have to end after SIGTERM (60)",
	 SECONDS(stop_seconds)},
	{"state-dir", "DIR",
	 "keep tensors and sessions in files of DIR for the next npumemd; systemd: in a store of systemd",
	 .set = set_text, AT(state_dir), .expected = "a directory has a name"},
	{"set-aside", "N",
	 "if the state cannot be used, move it to a folder of its own and begin a new one; keep at most N such "
	 "folders, then refuse to start (0: always refuse)",
	 NUMBER(set_aside, 0, 1000, "0 to 1000 states")},
	{"describe-state", "DIR", "print a description of the state in DIR and end, as npumemctl state DIR",
	 .set = set_text, AT(describe_state), .expected = "a directory has a name"},
	{"boot-id", "ID", "boot ID of the machine, if /proc/sys cannot be read: %b in a unit", .set = set_text,
	 AT(boot_id), .expected = "32 hexadecimal digits"},
	{"durable", NULL, "replies wait for the disk, so that a loss of power loses no answered change",
	 FLAG(durable)},
	{"replay", NULL, "the state is the snapshot of a recording, for npumemctl replay", FLAG(replay)},
	{"resume-seconds", "SECONDS", "time that a session waits for its client after a restart (30)",
	 SECONDS(resume_seconds)},
	{"spin-us", "N", "poll the socket for this many microseconds before sleeping, if it saves time (0)",
	 NUMBER(spin_us, 0, 1000, "0 to 1000 microseconds")},
	{"log", "LEVEL", "error, warning, info, debug (info)",
	 CHOICE(log, log_level_parse, "error, warning, info, debug")},
	{.name = "version", .help = "print the version and end"},
	{.name = "help", .help = "print this help and end"},
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
	if (options->fd >= 0 && options->background) {
		snprintf(parse->error, OPTIONS_ERROR_BYTES, "--fd goes without --background");
		return OPTIONS_BAD;
	}
	if (options->fd >= 0 && options->users) {
		snprintf(parse->error, OPTIONS_ERROR_BYTES, "--fd goes without --users");
		return OPTIONS_BAD;
	}
	if (options->mode < 0)
		options->mode = options->users ? 0660 : 0666;
	if ((options->durable || options->replay || options->set_aside) && !options->state_dir) {
		snprintf(parse->error, OPTIONS_ERROR_BYTES, "--%s goes with --state-dir",
			 options->durable  ? "durable"
			 : options->replay ? "replay"
					   : "set-aside");
		return OPTIONS_BAD;
	}
	if (options->fd < 0 && !options->socket[0] && !default_socket(options, parse->error))
		return OPTIONS_BAD;
	return OPTIONS_RUN;
}

static enum options_result parse_all(int argc, char **argv, struct options *options, char *error)
{
	struct option table[N_ROWS + 1] = {{0}};
	struct parse parse = {.options = options, .error = error};
	int index, found;

	*options = (struct options){.fd = -1,
				    .mode = -1,
				    .subuid = "/etc/subuid",
				    .log = LOG_LEVEL_INFO,
				    .frame_seconds = 30,
				    .drain_seconds = 30,
				    .stop_seconds = 60,
				    .resume_seconds = 30,
				    .compact_percent = 5,
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
		snprintf(error, OPTIONS_ERROR_BYTES, "%.64s: npumemd takes options only", argv[optind]);
		return OPTIONS_BAD;
	}
	return finish(&parse);
}

/* Messages quote words of the command line, without line breaks and control characters. */
static void make_printable(char *error)
{
	struct npumem_error printable;

	npumem_error_clear(&printable);
	npumem_error_set(&printable, NPUMEM_INVALID, "%s", error);
	snprintf(error, OPTIONS_ERROR_BYTES, "%.255s", printable.message);
}

enum options_result options_parse(int argc, char **argv, struct options *options, char error[OPTIONS_ERROR_BYTES])
{
	enum options_result result = parse_all(argc, argv, options, error);

	if (result == OPTIONS_BAD)
		make_printable(error);
	return result;
}
