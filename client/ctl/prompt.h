/* Lines for npumemctl without a command: at a terminal with history and completion, else as they come. */
#ifndef CTL_PROMPT_H
#define CTL_PROMPT_H

#include "client/ctl/ctl.h"

/* True if stdin and stdout are a terminal. */
bool prompt_is_terminal(void);
/* Reads the history of earlier times, and lets names of `ctl`'s daemon complete. From now on an interrupt ends no
 * more than the line that is typed, or what its command waits for. At a terminal, before the first line. */
void prompt_begin(struct ctl *ctl);
/* Before a line's command: an interrupt before it is over, whatever earlier commands did with signals. */
void prompt_arm(void);
/* The next line, without its end; NULL after the last; empty where it was interrupted. The caller frees it. */
char *prompt_line(void);
/* Keeps the history. */
void prompt_end(void);

#endif
