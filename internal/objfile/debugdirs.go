// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"path/filepath"
)

// DebugDirs says where separate debug files are looked for. The zero value
// looks only beside the file itself.
type DebugDirs struct {
	// Roots hold .build-id/NN/NNN.debug and, by the path of the binary, files
	// named by .gnu_debuglink.
	Roots []string
	// Downloads hold what debuginfod clients have fetched: ID/debuginfo.
	// Nothing is fetched here.
	Downloads []string
}

// SystemDebugDirs are the directories that gdb uses as well: /usr/lib/debug,
// and the cache of the debuginfod client, of which DEBUGINFOD_CACHE_PATH,
// XDG_CACHE_HOME and HOME tell the place.
func SystemDebugDirs(env func(string) string) DebugDirs {
	dirs := DebugDirs{Roots: []string{"/usr/lib/debug"}}
	if explicit := env("DEBUGINFOD_CACHE_PATH"); filepath.IsAbs(explicit) {
		dirs.Downloads = append(dirs.Downloads, explicit)
	}
	for _, base := range []string{env("XDG_CACHE_HOME"), filepath.Join(env("HOME"), ".cache")} {
		if filepath.IsAbs(base) {
			dirs.Downloads = append(dirs.Downloads, filepath.Join(base, "debuginfod_client"))
		}
	}
	return dirs
}
