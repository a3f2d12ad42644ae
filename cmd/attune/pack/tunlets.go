// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/cmd/attune/internal/tunletfind"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/packfile"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// PackedTunlet is a tunlet's file, or another name of one.
type PackedTunlet struct {
	Name string // of the file
	Path string // where it is; empty: it is a link
	To   string // the name of the file that it leads to
}

// packableTunlets returns the tunlets that can be used, and says of those of several files
// that they cannot be packed.
func packableTunlets(run config.Run) []tunlethost.Candidate {
	found := tunlethost.Find(tunletfind.Dirs(run.TunletDirs), run.Tunlets)
	for i, t := range found {
		if t.Err == nil && t.Folder != "" {
			found[i].Err = errors.New("a tunlet of several files is not packed")
		}
	}
	return found
}

// PackedTunlets lists what to pack for the tunlets that can be used: a file that
// many of them lead to goes in once.
func PackedTunlets(found []tunlethost.Candidate) (list []PackedTunlet) {
	have := map[string]string{} // name of a file in the pack to where it is
	interpreted := false
	for _, t := range found {
		switch {
		case t.Err != nil:
		case t.Interpreter == "":
			list = append(list, packedBinary(sdk.ProgramPrefix+t.Name, t.Path, have)...)
		default:
			if !interpreted {
				interpreted = true
				list = append(list, packedBinary(sdk.ProgramPrefix+sdk.Interpreter, t.Interpreter, have)...)
			}
			list = append(list, PackedTunlet{Name: t.Name + sdk.DeclarationSuffix, Path: t.Path})
		}
	}
	return list
}

// packedBinary lists what to pack for a program: a file, a link to one, or both.
func packedBinary(name, path string, have map[string]string) (list []PackedTunlet) {
	real, err := filepath.EvalSymlinks(path)
	to := filepath.Base(real)
	if err != nil || to == name || to[0] == '.' || have[to] != "" && have[to] != real {
		return []PackedTunlet{{Name: name, Path: path}}
	}
	if have[to] == "" {
		have[to] = real
		list = append(list, PackedTunlet{Name: to, Path: real})
	}
	return append(list, PackedTunlet{Name: name, To: to})
}

// useTunlets looks for tunlets in a directory, and with none asked for by name
// has all that were packed used, and no others; a file without any uses the
// node's.
func useTunlets(cfg *config.Run, packed *packfile.File, dir string) {
	cfg.TunletDirs = []string{dir}
	if len(cfg.Tunlets) > 0 {
		return
	}
	for _, part := range packed.Parts {
		name := tunlethost.NameOf(part.Name)
		if name != "" && (part.Kind == packfile.Tunlet || part.Kind == packfile.TunletLink) {
			cfg.Tunlets = append(cfg.Tunlets, name)
		}
	}
}

// unpackTunlets unpacks the tunlets into a directory that is not there yet.
func unpackTunlets(packed *packfile.File, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	var errs []error
	for _, part := range packed.Parts {
		if part.Kind == packfile.Tunlet || part.Kind == packfile.TunletLink {
			errs = append(errs, extractTo(packed, part, filepath.Join(dir, part.Name)))
		}
	}
	return errors.Join(errs...)
}

// linkTo makes a part that is a name of another one's file such a name again.
func linkTo(packed *packfile.File, part packfile.Part, path string) error {
	var to strings.Builder
	if err := packed.Extract(&to, part); err != nil {
		return err
	}
	if to.String() == "" || to.String() != filepath.Base(to.String()) {
		return fmt.Errorf("%s leads to %q, which is no file beside it", part.Name, to.String())
	}
	return os.Symlink(to.String(), path)
}
