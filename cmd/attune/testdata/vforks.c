// SPDX-License-Identifier: Apache-2.0

/* Waits in vfork(2) for a child that does nothing, and so cannot be stopped. */

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(void) {
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            pause();
        }
    }
    return 0;
}
