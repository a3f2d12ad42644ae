// SPDX-License-Identifier: Apache-2.0

// Package objects says whether a process has a program or library that an option of a
// tunlet names.
package objects

import (
	"path"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// RunsOrMaps reports whether a process runs an object whose base name matches the pattern
// (path.Match), or has it mapped.
func RunsOrMaps(process sdk.Process, pattern string) bool {
	ok, err := path.Match(pattern, path.Base(process.Executable))
	return ok && err == nil || process.Maps(pattern)
}
