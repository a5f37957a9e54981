/* Describes a state directory in lines for npumemctl state. */
#ifndef SERVER_DESCRIBE_H
#define SERVER_DESCRIBE_H

/* Prints on stdout a line for each fact, KEY VALUE; the facts of a state that was set aside follow its line "aside
 * NAME". The exit code: 0; 1 and the line "error" where the directory cannot be read. */
int describe_state(const char *directory);

#endif
