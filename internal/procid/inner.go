// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// InnerID is the id of a thread as its process sees it, in the innermost pid
// namespace: line NSpid of its status file (proc_pid_status(5)). [ErrGone] if
// it has ended.
func InnerID(pid, tid int) (int, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		return 0, fmt.Errorf("thread %d: %w", tid, GoneError(err))
	}
	for line := range strings.Lines(string(content)) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			fields := strings.Fields(ids)
			return strconv.Atoi(fields[len(fields)-1])
		}
	}
	return 0, errors.New("status without NSpid")
}
