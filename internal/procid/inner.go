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
	ids, err := parseIDs(status)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(ids[len(ids)-1]))
}

// Nested says whether a process is in a pid namespace below that of /proc, and so
// has other ids there. [ErrGone] if it has ended.
func Nested(pid int) (bool, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false, fmt.Errorf("process %d: %w", pid, GoneError(err))
	}
	ids, err := parseIDs(content)
	return len(ids) > 1, err
}

// parseIDs returns the ids of a thread in all pid namespaces that it is in, that of
// /proc first.
func parseIDs(status []byte) ([][]byte, error) {
	for line := range bytes.Lines(status) {
		ids, ok := bytes.CutPrefix(line, []byte("NSpid:"))
		if fields := bytes.Fields(ids); ok && len(fields) > 0 {
			return fields, nil
		}
	}
	return nil, errors.New("status without NSpid")
}
