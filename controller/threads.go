// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// threadAlive tells of the threads of a process by the ids that they have in
// the process' own pid namespace, which DMLib sees. Where their list cannot be
// read all are taken as alive: a slot that a living thread still writes to
// must not be given away.
func threadAlive(pid int) func(int) bool {
	alive, err := innerThreads(fmt.Sprintf("/proc/%d/task", pid))
	return func(tid int) bool { return err != nil || alive[tid] }
}

// innerThreads reads the ids of the threads in a task directory. One that ends
// meanwhile is left out.
func innerThreads(dir string) (map[int]bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	alive := make(map[int]bool, len(entries))
	for _, entry := range entries {
		status, err := os.ReadFile(filepath.Join(dir, entry.Name(), "status"))
		if err != nil {
			continue
		}
		tid, err := innerID(status)
		if err != nil {
			return nil, err
		}
		alive[tid] = true
	}
	return alive, nil
}

// innerID is the thread's id in its innermost pid namespace: the last of the
// line NSpid of its status file (proc_pid_status(5)).
func innerID(status []byte) (int, error) {
	for line := range bytes.Lines(status) {
		ids, ok := bytes.CutPrefix(line, []byte("NSpid:"))
		if fields := bytes.Fields(ids); ok && len(fields) > 0 {
			return strconv.Atoi(string(fields[len(fields)-1]))
		}
	}
	return 0, errors.New("status without NSpid")
}
