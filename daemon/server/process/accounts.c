/* The file is parsed into ranges in its own order, as the first range that has a uid counts. Owners' names are
 * sorted once, so that a passwd of many lines is read in one go. Invariant: ranges[i].first <= ranges[i].last. */
#include "daemon/server/process/accounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/server/process/log.h"

enum {
	FILE_BYTES_MAX = 16 << 20,
	CHAIN_MAX = 4, /* a subordinate uid may own subordinate uids */
};

/* A piece of a text. */
struct word {
	const char *at;
	size_t n;
};

/* A line of subuid(5). */
struct line {
	struct word owner;
	uint32_t first, last;
};

/* An owner that has a name, and the account of its ranges. */
struct owner {
	struct word name;
	uint32_t account;
};

/* ---- texts ---- */

/* Up to `end` or the end of the line; *at goes behind it. */
static struct word next_word(const char **at, char end)
{
	struct word word = {.at = *at};

	while (**at && **at != '\n' && **at != end)
		++*at;
	word.n = (size_t)(*at - word.at);
	*at += **at == end;
	return word;
}

static void next_line(const char **at)
{
	while (**at && **at != '\n')
		++*at;
	*at += **at == '\n';
}

static bool number_of(const struct word *word, uint64_t *number)
{
	*number = 0;
	for (size_t i = 0; i < word->n; i++) {
		if (word->at[i] < '0' || word->at[i] > '9' || *number > UINT32_MAX)
			return false;
		*number = *number * 10 + (uint64_t)(word->at[i] - '0');
	}
	return word->n > 0 && *number <= UINT32_MAX;
}

/* False: the line is none, or its range is empty. */
static bool parse_line(const char **at, struct line *line)
{
	struct word first, count;
	uint64_t from, n;
	bool is_line;

	line->owner = next_word(at, ':');
	first = next_word(at, ':');
	count = next_word(at, ':');
	is_line = line->owner.n && *line->owner.at != '#' && number_of(&first, &from) && number_of(&count, &n) &&
		  n > 0 && n - 1 <= UINT32_MAX - from;
	next_line(at);
	if (!is_line)
		return false;
	line->first = (uint32_t)from;
	line->last = (uint32_t)(from + n - 1);
	return true;
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; next_line(&text))
		n++;
	return n;
}

/* ---- owners ---- */

static int compare(const void *a, const void *b)
{
	const struct owner *one = a, *other = b;
	size_t n = one->name.n < other->name.n ? one->name.n : other->name.n;
	int order = memcmp(one->name.at, other->name.at, n);

	return order ? order : (one->name.n > other->name.n) - (one->name.n < other->name.n);
}

static struct owner *find(struct owner *owners, size_t n, const struct word *name)
{
	const struct owner key = {.name = *name};

	return bsearch(&key, owners, n, sizeof(*owners), compare);
}

static bool is_shared(uint64_t uid, uint32_t admin)
{
	return uid != 0 && uid != admin;
}

/* The account that the owner itself is; else that of the owner's first range. */
static void set_accounts(struct owner *owners, size_t n, const char *passwd, uint32_t admin)
{
	while (*passwd) {
		struct word name = next_word(&passwd, ':'), uid;
		struct owner *owner = find(owners, n, &name);
		uint64_t number;

		next_word(&passwd, ':');
		uid = next_word(&passwd, ':');
		if (owner && number_of(&uid, &number) && is_shared(number, admin))
			owner->account = (uint32_t)number;
		next_line(&passwd);
	}
}

/* Lists each name once, in order, with the account of its first range. Returns their number. */
static size_t collect(const struct line *lines, size_t n_lines, uint32_t admin, struct owner *owners)
{
	size_t n = 0, n_all = 0;

	for (size_t i = 0; i < n_lines; i++)
		owners[n_all++] = (struct owner){.name = lines[i].owner, .account = lines[i].first};
	qsort(owners, n_all, sizeof(*owners), compare);
	for (size_t i = 0; i < n_all; i++)
		if (!n || compare(&owners[n - 1], &owners[i]))
			owners[n++] = owners[i];
	for (size_t i = n_lines; i-- > 0;)
		find(owners, n, &lines[i].owner)->account = lines[i].first;
	/* Names of digits alone are uids. */
	for (size_t i = 0; i < n; i++) {
		uint64_t uid;

		if (number_of(&owners[i].name, &uid) && is_shared(uid, admin))
			owners[i].account = (uint32_t)uid;
	}
	return n;
}

static size_t parse_lines(const char *subuid, struct line *lines)
{
	size_t n = 0;

	while (*subuid)
		n += parse_line(&subuid, &lines[n]);
	return n;
}

/* Ranges of the lines, which have one owner each. */
static void fill(const struct line *lines, size_t n_lines, struct owner *owners, size_t n_owners,
		 struct accounts_range *ranges)
{
	for (size_t i = 0; i < n_lines; i++)
		ranges[i] = (struct accounts_range){lines[i].first, lines[i].last,
						    find(owners, n_owners, &lines[i].owner)->account};
}

size_t accounts_parse(const char *subuid, const char *passwd, uint32_t admin, struct accounts_range **ranges)
{
	size_t n = count_lines(subuid), n_owners;
	struct line *lines = calloc(n + 1, sizeof(*lines));
	struct owner *owners = calloc(n + 1, sizeof(*owners));

	*ranges = calloc(n + 1, sizeof(**ranges));
	n = lines && owners && *ranges ? parse_lines(subuid, lines) : 0;
	if (n) {
		n_owners = collect(lines, n, admin, owners);
		set_accounts(owners, n_owners, passwd, admin);
		fill(lines, n, owners, n_owners, *ranges);
	}
	if (!lines || !owners) {
		free(*ranges);
		*ranges = NULL;
	}
	free(lines);
	free(owners);
	return n;
}

/* ---- files ---- */

/* Reads all, or fails: a part of a file would mean something else. */
static int read_all(int fd, char *text, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = read(fd, text + done, bytes - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -EIO;
		done += n > 0 ? (size_t)n : 0;
	}
	text[done] = 0;
	return 0;
}

static int read_open_file(int fd, char **text, struct stat *file)
{
	int status = fstat(fd, file) ? -errno : 0;

	if (!status && (!S_ISREG(file->st_mode) || file->st_size > FILE_BYTES_MAX))
		status = -EFBIG;
	if (status)
		return status;
	*text = malloc((size_t)file->st_size + 1);
	if (!*text)
		return -ENOMEM;
	status = read_all(fd, *text, (size_t)file->st_size);
	if (status)
		free(*text);
	return status;
}

/* *text is of free(); a file that is not there is an empty one, and `file` zeros. 0 or -errno. */
static int read_file(const char *path, char **text, struct stat *file)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), status;

	memset(file, 0, sizeof(*file));
	if (fd < 0 && errno == ENOENT) {
		*text = calloc(1, 1);
		return *text ? 0 : -ENOMEM;
	}
	if (fd < 0)
		return -errno;
	status = read_open_file(fd, text, file);
	close(fd);
	return status;
}

static int parse_files(const struct accounts *accounts, struct accounts *now)
{
	char *subuid, *passwd;
	struct stat passwd_file;
	int status = read_file(accounts->path, &subuid, &now->seen);

	if (status)
		return status;
	status = read_file("/etc/passwd", &passwd, &passwd_file);
	if (!status) {
		now->n = accounts_parse(subuid, passwd, accounts->admin, &now->ranges);
		status = now->ranges ? 0 : -ENOMEM;
		free(passwd);
	}
	free(subuid);
	return status;
}

static int load(struct accounts *accounts)
{
	struct accounts now = {.path = accounts->path, .admin = accounts->admin};
	int status = parse_files(accounts, &now);

	if (status)
		return status;
	free(accounts->ranges);
	*accounts = now;
	return 0;
}

int accounts_open(struct accounts *accounts, const char *path, uint32_t admin)
{
	*accounts = (struct accounts){.path = path, .admin = admin};
	return path ? load(accounts) : 0;
}

void accounts_close(struct accounts *accounts)
{
	free(accounts->ranges);
	*accounts = (struct accounts){.path = NULL};
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

void accounts_refresh(struct accounts *accounts)
{
	struct stat now;
	int status;

	if (!accounts->path)
		return;
	if (stat(accounts->path, &now))
		memset(&now, 0, sizeof(now));
	if (!accounts->has_failed && is_same(&now, &accounts->seen))
		return;
	status = load(accounts);
	if (status && !accounts->has_failed)
		log_line(LOG_LEVEL_WARNING, "the subordinate uids in %s cannot be read: %s", accounts->path,
			 strerror(-status));
	accounts->has_failed = status != 0;
}

uint32_t accounts_of(const void *ctx, uint32_t uid)
{
	const struct accounts *accounts = ctx;

	if (!is_shared(uid, accounts->admin))
		return uid;
	for (unsigned chain = 0; chain < CHAIN_MAX; chain++) {
		size_t i = 0;

		while (i < accounts->n && (uid < accounts->ranges[i].first || uid > accounts->ranges[i].last))
			i++;
		if (i == accounts->n || accounts->ranges[i].account == uid)
			break;
		uid = accounts->ranges[i].account;
	}
	return uid;
}
