/* The format of a state's files, in the byte order of the machine: a state cannot move to another architecture,
 * and neither can the memory of the clients. Every file begins with a page of its own.
 *
 * The process may die at any store. So each change in place is one word of 8 bytes, or it becomes valid by a later
 * store of one word. */
#ifndef STORE_FORMAT_H
#define STORE_FORMAT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/store.h"

enum format_file { FORMAT_JOURNAL, FORMAT_MEMORY, FORMAT_TENSORS, FORMAT_SESSIONS, FORMAT_RESULTS, FORMAT_FILES };

enum {
	FORMAT_VERSION_LEAST = 1, /* the oldest that is read; identity_begin raises it to FORMAT_VERSION */
	FORMAT_VERSION = 4,	  /* new in 2: the log, notes of running requests, smaller cells in new tables;
				     in 4: the log's checksum has a key */
	FORMAT_VERSION_NEVER = 3, /* was never written: one flipped bit away from 1 and from 2 */
	FORMAT_PAGE_BYTES = 4096,
	FORMAT_RECORDS_OFF = 1 << 20,	/* in the journal; a multiple of every page's size */
	FORMAT_RECORDS_BYTES = 1 << 16, /* at least */
	FORMAT_ID_BYTES = 16,
};

#define FORMAT_MAGIC "npumem\2s"

/* Written when the state is made, and version and crc by the first process of a later version. Magic and version
 * stay where they are in every version. */
struct format_header {
	char magic[8];
	uint32_t version, file;
	uint8_t state[FORMAT_ID_BYTES]; /* random; the same in all files */
	uint64_t memory_bytes;
	uint32_t geometry_bytes;
	char text[STORE_TEXT_BYTES_MAX];
	uint8_t geometry[STORE_GEOMETRY_BYTES_MAX];
	uint32_t crc; /* of the members before it */
};

/* A copy of a file has another identity. */
struct format_identity {
	uint64_t inode;
	int64_t born_seconds, born_ns; /* 0 where the file system does not know */
};

/* The process that has, or had, the state open. */
struct format_run {
	uint32_t epoch; /* odd */
	uint32_t durable;
	uint8_t boot[FORMAT_ID_BYTES];
	struct format_identity files[FORMAT_FILES];
	uint32_t crc; /* of the members before it */
	uint32_t unused;
};

/* Words are changed in place (format_word). An epoch is odd while a process has the state open, and even after it
 * was closed. An older copy of a file has another epoch. */
struct format_page {
	struct format_header header;
	uint64_t unused[(1024 - sizeof(struct format_header)) / 8];
	uint64_t epoch;	     /* 0: the state's making was cut off */
	uint64_t n_cells;    /* of a table */
	uint64_t stale;	     /* of the journal: store_report.is_stale, until store_recovered */
	uint64_t cell_bytes; /* of a table; 0: as in version 1 */
	uint64_t unused_too[124];
	struct format_run runs[2]; /* of the journal, in turn: one stands while the other is written */
};

static_assert(sizeof(struct format_header) % 8 == 0 && sizeof(struct format_header) <= 1024, "");
static_assert(sizeof(struct format_page) <= FORMAT_PAGE_BYTES, "");

enum {
	FORMAT_EPOCH_MAX = INT32_MAX - 4,
};
/* Set in the journal's epoch while the other files may still have the one or two before it. */
#define FORMAT_TURNING UINT32_C(0x80000000)

enum format_state { FORMAT_EMPTY = 1, FORMAT_USED, FORMAT_LOST };

/* A cell, and its image in the journal. */
struct format_cell {
	uint32_t crc; /* zlib's, of the bytes behind it, begun with the cell's index */
	uint16_t bytes;
	uint8_t state, table;
	uint64_t seq; /* of the transaction that wrote it */
	uint8_t payload[];
};

/* A change in the journal: the place and the new cell. Padded to 8 bytes. */
struct format_record {
	uint32_t table, index;
	struct format_cell cell;
};

/* The head of a transaction's records. Only a journal of version 1 can have several, with consecutive numbers. */
struct format_transaction {
	uint64_t valid; /* format_mix of the members below; 0: there is no transaction */
	uint64_t seq;
	uint64_t bytes; /* with this head */
	uint64_t n_records;
};

/* The note of a write that has begun, in the journal between its page and its records. */
struct store_write {
	uint64_t valid; /* format_mix of the members below; 0: free */
	uint64_t handle;
	int64_t first, count;
};

/* The note of a running request, at the end of the first page of the sessions' file, which is synced least
 * often. */
struct store_run {
	uint64_t valid; /* under_way.c; 0: no request */
	uint64_t session, request, method;
};

enum {
	FORMAT_RUNS_OFF = FORMAT_PAGE_BYTES - STORE_RUNS_MAX * (int)sizeof(struct store_run),
	FORMAT_CELL_BYTES = sizeof(struct format_cell),
	FORMAT_RECORD_BYTES_MAX = sizeof(struct format_record) + STORE_TENSOR_BYTES_MAX,
	FORMAT_WRITES = (FORMAT_RECORDS_OFF - FORMAT_PAGE_BYTES) / sizeof(struct store_write),
};

static_assert(FORMAT_CELL_BYTES == 16 && (int)FORMAT_WRITES == STORE_WRITES_MAX, "");
static_assert((int)FORMAT_RUNS_OFF >= (int)sizeof(struct format_page), "");

/* A number in one word with a check, so that a flipped bit is noticed. */
static inline uint64_t format_word(uint32_t number)
{
	return (uint64_t)number << 32 | (number * UINT32_C(0x9e3779b1) ^ UINT32_C(0x6e70756d));
}

static inline bool format_number(uint64_t word, uint32_t *number)
{
	*number = (uint32_t)(word >> 32);
	return word == format_word(*number);
}

/* A checksum of three numbers. It is never 0, nor one bit flip away from 0. */
static inline uint64_t format_mix(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t mix = a * UINT64_C(0x9e3779b97f4a7c15);

	mix = (mix ^ mix >> 32 ^ b) * UINT64_C(0xc2b2ae3d27d4eb4f);
	mix = (mix ^ mix >> 32 ^ c) * UINT64_C(0x165667b19e3779f9);
	return (mix ^ mix >> 32) | UINT64_C(0x8000000000000001);
}

/* With `durable` the journal has rounds (log.h) instead of transactions, one behind the other. This is the head of
 * a round; its changes follow. */
struct format_log {
	uint64_t magic;
	uint64_t seq;	/* of a process's first round random, else one more than that of the round before */
	uint64_t bytes; /* with this head */
	uint64_t sum;	/* log_sum; in version 2: 0, and in the upper half the CRC-32 of the bytes before that and
			   behind it */
};

struct format_change {
	uint32_t file, bytes;
	uint64_t off;
	uint8_t data[]; /* padded to 8 bytes */
};

#define FORMAT_LOG_MAGIC UINT64_C(0x676f6c6d75706e02)

/* For new tables; a table never changes the size of its cells. */
static inline uint32_t format_cell_bytes(enum store_table table)
{
	return table == STORE_TENSORS ? 256 : 128;
}

static inline uint32_t format_cell_bytes_of_version_1(enum store_table table)
{
	return table == STORE_TENSORS ? 512 : 128;
}

static inline enum format_file format_file_of(enum store_table table)
{
	return (enum format_file)(FORMAT_TENSORS + (int)table);
}

#endif
