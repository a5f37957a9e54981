/* Lines for npumemctl without a command: at a terminal with history and completion, else as they come. */
#ifndef CTL_PROMPT_H
#define CTL_PROMPT_H

#include "client/ctl/ctl.h"

/* True where somebody types: stdin and stdout are a terminal. */
bool prompt_is_terminal(void);
/* Reads the history of earlier times, and lets names of `ctl`'s daemon complete. At a terminal, before the first
 * line.
 */
void prompt_begin(struct ctl *ctl);
/* The next line, without its end; NULL after the last. The caller frees it. */
char *prompt_line(void);
/* Keeps the history. */
void prompt_end(void);

#endif
