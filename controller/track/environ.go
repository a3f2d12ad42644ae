// SPDX-License-Identifier: Apache-2.0

package track

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/internal/batch"
	"github.com/attune-hpc/attune/internal/procid"
)

// environment holds the variables that say where a process belongs.
type environment map[string]string

func readEnviron(pid int) environment {
	data, err := procid.ReadFile(pid, "environ", procid.MaxEnvironBytes)
	if err != nil {
		return environment{}
	}
	return parseEnviron(data)
}

// parseEnviron picks those variables from the content of /proc/PID/environ.
// The program may have overwritten it with anything.
func parseEnviron(data []byte) environment {
	wanted := make(map[string]bool)
	for _, name := range slices.Concat(jobVariables(), rankVariables(), batch.Variables(), []string{slurmRank, OffVariable}) {
		wanted[name] = true
	}
	found := make(environment)
	for len(data) > 0 {
		var entry []byte
		entry, data, _ = bytes.Cut(data, []byte{0})
		name, value, ok := bytes.Cut(entry, []byte("="))
		if !ok || len(name) == 0 || !wanted[string(name)] {
			continue
		}
		// As getenv does: the first of several counts.
		if _, again := found[string(name)]; !again && len(value) <= maxTextBytes {
			found[string(name)] = strings.ToValidUTF8(string(value), "?")
		}
	}
	return found
}

// off says whether the process is to be left alone.
func (e environment) off() bool { return e[OffVariable] == Off }

// rank returns the MPI rank, nil outside MPI. Launchers write special values
// above the greatest rank (PMIX_RANK_UNDEF is 2^32-1).
func (e environment) rank() *int32 {
	names := rankVariables()
	if e[slurmStep] != "" {
		names = append(names, slurmRank)
	}
	for _, name := range names {
		value, err := strconv.ParseUint(e[name], 10, 32)
		if err == nil && value < math.MaxInt32 {
			rank := int32(value)
			return &rank
		}
	}
	return nil
}
