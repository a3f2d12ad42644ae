// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// InnerID is the id of a thread as its process sees it, in the innermost pid
// namespace: line NSpid of its status file (proc_pid_status(5)). [ErrGone] if
// it has ended.
func InnerID(pid, tid int) (int, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		return 0, fmt.Errorf("thread %d: %w", tid, GoneError(err))
	}
	return ParseInnerID(content)
}

// ParseInnerID parses the status file of a thread.
func ParseInnerID(status []byte) (int, error) {
	for line := range bytes.Lines(status) {
		ids, ok := bytes.CutPrefix(line, []byte("NSpid:"))
		if fields := bytes.Fields(ids); ok && len(fields) > 0 {
			return strconv.Atoi(string(fields[len(fields)-1]))
		}
	}
	return 0, errors.New("status without NSpid")
}
