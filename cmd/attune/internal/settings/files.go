// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/cmd/internal/configfile"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/values"
)

// PackedSettings returns one configuration file with what a file says, which may
// be "", and the flags that were given.
func PackedSettings(flags *pflag.FlagSet, file string) ([]byte, error) {
	v := viper.New()
	v.SetConfigType("yaml")
	if file != "" {
		if _, err := os.Stat(file); err != nil {
			return nil, exitcode.UsageError(err, "name a configuration file with --config")
		}
		if err := configfile.Merge(v, file, os.Open, runKeys()); err != nil { // it was named, whoever wrote it
			return nil, exitcode.UsageError(err, "correct the file")
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed || !slices.Contains(packedKeys(), f.Name) {
			return
		}
		v.Set(f.Name, f.Value.String())
		if list, ok := f.Value.(pflag.SliceValue); ok {
			v.Set(f.Name, list.GetSlice())
		}
	})
	var text bytes.Buffer
	if err := v.WriteConfigTo(&text); err != nil {
		return nil, fmt.Errorf("settings to be packed: %w", err)
	}
	return text.Bytes(), nil
}

// SiteDir is the site's directory.
const SiteDir = "/etc/attune"

// Files lists the files that are read, later ones overriding: those of
// the site, then those of the user.
func Files(env func(string) string) []string {
	bases := []string{SiteDir}
	if own := UserDir(env); own != "" {
		bases = append(bases, own)
	}
	return filesBelow(bases)
}

// UserDir is the user's directory; empty: they have none.
func UserDir(env func(string) string) string {
	switch dir, home := env("XDG_CONFIG_HOME"), env("HOME"); {
	case filepath.IsAbs(dir):
		return filepath.Join(dir, "attune")
	case filepath.IsAbs(home):
		return filepath.Join(home, ".config/attune")
	}
	return ""
}

func filesBelow(bases []string) []string {
	var files []string
	for _, base := range bases {
		files = append(files, filepath.Join(base, "attune.yaml"))
		drops, err := filepath.Glob(filepath.Join(base, "attune.d", "*.yaml"))
		if err == nil { // the pattern is well-formed
			slices.Sort(drops)
			files = append(files, drops...)
		}
	}
	return files
}

// Merge adds one file of settings of a run, which need not exist. It must be root's or this
// user's.
func Merge(v *viper.Viper, file string) error { return configfile.Merge(v, file, openOwn, runKeys()) }

// EachFile has read take what it looks for from each of the files of settings, by itself, in
// their order.
func EachFile(files []string, read func(from *values.Reader)) error {
	for _, file := range files {
		v := viper.New()
		if err := Merge(v, file); err != nil {
			return err
		}
		from := values.Reader{Values: v}
		if read(&from); from.Err != nil {
			return fmt.Errorf("configuration %s: %w", file, from.Err)
		}
	}
	return nil
}

func runKeys() []string { return append(fileKeys(), KeyAnalyzer, KeyRegistry, KeyArchiveAt) }

// openOwn opens a file that root or this user owns. HOME may be another user's, as by sudo -E:
// their settings say which files are written, and by root those would be any.
func openOwn(file string) (*os.File, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrPermission) && !strings.HasPrefix(file, SiteDir) {
		return nil, fs.ErrNotExist // HOME is still somebody else's, as after su
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(int(f.Fd()), &st); err == nil && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		err = fmt.Errorf("%s belongs to user %d, and you are user %d: set HOME, or XDG_CONFIG_HOME, to your own directory", file, st.Uid, os.Geteuid())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// fileKeys lists what may stand in a file.
func fileKeys() []string {
	return []string{
		KeyMode, KeyTunlet, KeyTunletDir, KeyTunletMB, KeyTunletCPU, keyTunletSet, KeyProbe, KeyBudget, keyReport, keyHTML, KeyTimeline, KeyRecord, KeyQuiet,
		KeyWatch, keyNoBPF, keyLogFile, KeyLogLevel, KeyTunlets, KeyTunlets + configfile.Below,
	}
}

// packedKeys lists what may stand in the settings of a packed program: an objective is of
// one program, and so is the file.
func packedKeys() []string { return append(fileKeys(), KeyObjective) }
