// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"os"
	"path/filepath"
)

// debugDirs says where separate debug files are looked for. The zero value
// looks only beside the file itself.
type debugDirs struct {
	// Roots hold .build-id/NN/NNN.debug and, by the path of the binary, files
	// named by .gnu_debuglink.
	Roots []string
	// Downloads hold what debuginfod clients have fetched: ID/debuginfo.
	// Nothing is fetched here.
	Downloads []string
}

// systemDebugDirs are the directories that gdb uses as well: /usr/lib/debug,
// and the cache of the debuginfod client, of which DEBUGINFOD_CACHE_PATH,
// XDG_CACHE_HOME and HOME tell the place.
func systemDebugDirs() debugDirs {
	dirs := debugDirs{Roots: []string{"/usr/lib/debug"}}
	if explicit := os.Getenv("DEBUGINFOD_CACHE_PATH"); filepath.IsAbs(explicit) {
		dirs.Downloads = append(dirs.Downloads, explicit)
	}
	for _, base := range []string{os.Getenv("XDG_CACHE_HOME"), filepath.Join(os.Getenv("HOME"), ".cache")} {
		if filepath.IsAbs(base) {
			dirs.Downloads = append(dirs.Downloads, filepath.Join(base, "debuginfod_client"))
		}
	}
	return dirs
}
