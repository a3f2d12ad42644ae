// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"bytes"
	"fmt"
	"strconv"
)

// UserID returns the real user id of a process; [ErrGone] if it has ended.
func UserID(pid int) (uint32, error) {
	status, err := ReadFile(pid, "status", maxStatBytes)
	if err != nil {
		return 0, err
	}
	return parseUserID(status)
}

// parseUserID finds the real user id in the content of /proc/PID/status.
func parseUserID(status []byte) (uint32, error) {
	_, rest, _ := bytes.Cut(status, []byte("\nUid:"))
	fields := bytes.Fields(rest[:min(len(rest), 64)])
	if len(fields) == 0 {
		return 0, fmt.Errorf("%w: status without user", ErrMalformed)
	}
	uid, err := strconv.ParseUint(string(fields[0]), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%w: user %q", ErrMalformed, fields[0])
	}
	return uint32(uid), nil
}
