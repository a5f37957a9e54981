/* JSON as its tokens, from a text that ends with a zero byte. Each function that fails has set the error to
 * INVALID, with the path of the value in front and as its field "field". */
#ifndef CLIENT_LIB_JSON_TOKEN_H
#define CLIENT_LIB_JSON_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include <npumem/types.h>

enum { JSON_PATH_BYTES = 200, JSON_WORD_BYTES = 64 };

struct json_reader {
	const char *text, *at;
	struct npumem_error *error; /* may be NULL */
	/* Where in the message what is read belongs: "tensors[0].spec.dtype". Cut where it is too long. */
	char path[JSON_PATH_BYTES];
	size_t path_bytes;
};

/* Always returns NPUMEM_INVALID. */
int json_token_fail(struct json_reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A step down, ".name" or "[index]" where `name` is NULL; the path as it was is what `json_token_up` takes. */
size_t json_token_down(struct json_reader *reader, const char *name, size_t index);
void json_token_up(struct json_reader *reader, size_t path_bytes);

/* The next character that is no blank; 0 at the end. */
char json_token_peek(struct json_reader *reader);
/* Takes this character, if it is the next. */
bool json_token_take(struct json_reader *reader, char c);
/* Takes this word, if it is the next: null, true, false. */
bool json_token_word(struct json_reader *reader, const char *word);
/* Takes the end, or what must follow. 0 or INVALID. */
int json_token_expect(struct json_reader *reader, char c);

/* How many bytes the string that comes next decodes to at most; 0: none comes, or it has no end. */
size_t json_token_string_room(struct json_reader *reader);
/* A string: valid UTF-8 without zero bytes, and a zero byte after it. INVALID also where it has not less than
 * `room` bytes. */
int json_token_string(struct json_reader *reader, char *to, size_t room, size_t *bytes);
/* A number, bare or as a string, as its text. */
int json_token_number(struct json_reader *reader, char word[JSON_WORD_BYTES]);

#endif
