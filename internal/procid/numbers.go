// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
)

// ReadNumber reads a file that holds one number; a word such as "max" is an error.
func ReadNumber(path string) (uint64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(bytes.TrimSpace(data)), 10, 64)
}

// ReadNumbers is Numbers of a file.
func ReadNumbers(path string, into map[string]*uint64) (found int, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return Numbers(data, into)
}

// Numbers reads lines of the form "NAME: NUMBER [kB]", as smaps_rollup and meminfo have them,
// or "NAME NUMBER", as memory.stat of a cgroup: those whose name is in the map, kilobytes
// as bytes. It returns how many were found. [ErrMalformed] for one without a number.
func Numbers(data []byte, into map[string]*uint64) (found int, err error) {
	for line := range bytes.Lines(data) {
		words := bytes.Fields(line)
		if len(words) == 0 {
			continue
		}
		to := into[string(bytes.TrimSuffix(words[0], []byte(":")))]
		if to == nil {
			continue
		}
		if *to, err = parseNumber(words[1:]); err != nil {
			return found, fmt.Errorf("%w: %q", ErrMalformed, line)
		}
		found++
	}
	return found, nil
}

// ReadField reads the number of one name in a file of such lines.
func ReadField(path, name string) (uint64, error) {
	var n uint64
	found, err := ReadNumbers(path, map[string]*uint64{name: &n})
	if err == nil && found == 0 {
		err = fmt.Errorf("%w: %s has no %s", ErrMalformed, path, name)
	}
	return n, err
}

func parseNumber(words [][]byte) (uint64, error) {
	if len(words) == 0 {
		return 0, ErrMalformed
	}
	n, err := strconv.ParseUint(string(words[0]), 10, 64)
	if len(words) > 1 && string(words[1]) == "kB" {
		if n > math.MaxUint64>>10 {
			return 0, ErrMalformed
		}
		n <<= 10
	}
	return n, err
}
