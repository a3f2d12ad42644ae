// SPDX-License-Identifier: Apache-2.0

package buildinfo

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// version is set by the linker for releases:
// -X github.com/attune-hpc/attune/internal/buildinfo.version=v1.2.3
var version string

// Info describes a binary.
type Info struct {
	// Version is the release, or "devel".
	Version string `json:"version"`
	// Commit is the hash of the source, with "+dirty" where it was changed;
	// empty when unknown.
	Commit string `json:"commit,omitempty"`
	// Go is the version of the compiler.
	Go string `json:"go"`
	// Platform is the operating system and processor, as "linux/amd64".
	Platform string `json:"platform"`
}

// Get returns the facts about the running binary.
func Get() Info {
	info := Info{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if ok {
		info.Commit = commit(build.Settings)
		if info.Version == "" && build.Main.Version != "(devel)" {
			info.Version = build.Main.Version
		}
	}
	info.Version = cmp.Or(info.Version, "devel")
	return info
}

func commit(settings []debug.BuildSetting) string {
	var hash, dirty string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			hash = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if hash == "" {
		return ""
	}
	return hash + dirty
}
