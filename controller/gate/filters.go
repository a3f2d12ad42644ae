// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// filtersVariable says of how many seccomp filters DMLib need not beware (attune/filters.h).
const filtersVariable = "ATTUNE_FILTERS="

// KnownFilters is the variable for the programs that a process executes or starts: the filters
// of the process are no news to them. Nothing if they cannot be read: DMLib bewares of all.
func KnownFilters(pid int) []string {
	status, err := procid.ReadStatus(pid)
	if err != nil {
		return nil
	}
	return []string{filtersVariable + strconv.Itoa(status.Filters)}
}

// InSandbox says whether a process is under more seccomp filters than its environment says
// that DMLib need not beware of, or under the strict mode, which is no filter.
func InSandbox(pid int) bool {
	environment, _ := procid.Environ(pid) // what cannot be read says nothing
	for _, variable := range environment {
		if value, ok := bytes.CutPrefix(variable, []byte(filtersVariable)); ok {
			known, err := strconv.Atoi(string(value))
			status, statusErr := procid.ReadStatus(pid)
			return err == nil && statusErr == nil && (status.Filters > known || status.Seccomp == unix.SECCOMP_MODE_STRICT)
		}
	}
	return false
}
