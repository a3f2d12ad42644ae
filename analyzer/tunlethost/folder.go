// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/attune-hpc/attune/internal/objfile"
)

// maxFiles bounds the files of one tunlet: all of them are looked at before each start.
const maxFiles = 256

// folder is the directory of a tunlet of several files: its program has the directory's
// name. Empty: the tunlet is one file.
type folder string

// files lists the files, in the order of their paths: regular ones that only the
// present user or root may write to, in directories of which that is true as well.
func (f folder) files() (paths []string, err error) {
	err = filepath.WalkDir(string(f), func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !e.IsDir() && !e.Type().IsRegular():
			return fmt.Errorf("%s is neither a regular file nor a directory", path)
		case !e.IsDir():
			paths = append(paths, path)
		}
		if len(paths) > maxFiles {
			return fmt.Errorf("%s has more than %d files; install what it needs of others in the system's place for it", string(f), maxFiles)
		}
		return ownedBy(path, os.Geteuid())
	})
	return paths, err
}

// digest is the SHA-256 of the paths in the folder with the checksums of the files.
func (f folder) digest(ctx context.Context, digests *objfile.Digests) (string, error) {
	paths, err := f.files()
	if err != nil {
		return "", err
	}
	all := sha256.New()
	for _, path := range paths {
		sum, err := digests.Digest(ctx, path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(all, "%q %s\n", path[len(f):], sum)
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}
