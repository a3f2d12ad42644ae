// SPDX-License-Identifier: Apache-2.0

package archived

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/postgres"
	"github.com/attune-hpc/attune/internal/rundir"
	"github.com/attune-hpc/attune/internal/values"
)

// File is the name of the archive in the state directory.
const File = "archive.db"

// AddFlag declares the flag that says where the archive is.
func AddFlag(flags *pflag.FlagSet) {
	flags.String(settings.KeyArchiveAt, "", "the archive is at `PLACE`: a file, or the PostgreSQL database postgres://USER@HOST/DATABASE (docs/reference/archive.md)")
}

// Find returns where the archive is, a file or a URL: what the flag says, else the
// environment, else the last file of settings that says it. Empty: nothing does, and it is
// [File] in the state directory. Errors have the code for usage.
func Find(flags *pflag.FlagSet) (string, error) {
	place, err := flags.GetString(settings.KeyArchiveAt)
	if err != nil {
		return "", err
	}
	if postgres.IsURL(place) && postgres.HasPassword(place) {
		return "", exitcode.UsageError(fmt.Errorf("--%s: a password on a command line can be read by everybody", settings.KeyArchiveAt),
			"put it into ~/.pgpass, a line HOST:PORT:DATABASE:USER:PASSWORD, with mode 600")
	}
	place = cmp.Or(place, os.Getenv("ATTUNE_ARCHIVE_AT"))
	if place == "" {
		if place, err = fromFiles(settings.Files(os.Getenv)); err != nil {
			return "", exitcode.UsageError(err, "correct the file")
		}
	}
	return place, nil
}

// resolve returns the place of an archive in full: a URL, or a file by its absolute path, which
// is [File] in the state directory if at is empty.
func resolve(at string) (string, error) {
	if postgres.IsURL(at) {
		return at, nil
	}
	if at != "" {
		return filepath.Abs(at)
	}
	dir, err := rundir.Current().KnowledgeDir()
	return filepath.Join(dir, File), err
}

// fromFiles returns what the last of the files says that says anything.
func fromFiles(files []string) (place string, err error) {
	err = settings.EachFile(files, func(from *values.Reader) {
		place = cmp.Or(from.Text(settings.KeyArchiveAt), place)
	})
	return place, err
}
