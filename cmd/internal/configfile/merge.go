// SPDX-License-Identifier: Apache-2.0

package configfile

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

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/trusted"
	"github.com/attune-hpc/attune/internal/values"
)

// Below stands, behind the name of a known key, for all keys below that one, whose names are
// not known beforehand.
const Below = ".*"

// maxBytes bounds a file.
const maxBytes = 1 << 20

// New returns a viper with a setting for each flag, but for help and those in except. A value
// comes from the flag, or from the environment variable PREFIX_NAME, in upper case with _ for
// -. names are those of the flags.
func New(prefix string, flags *pflag.FlagSet, except ...string) (v *viper.Viper, names []string, err error) {
	v = viper.NewWithOptions(viper.EnvKeyReplacer(strings.NewReplacer("-", "_")))
	v.SetEnvPrefix(prefix)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !slices.Contains(except, f.Name) {
			names = append(names, f.Name)
			err = errors.Join(err, v.BindPFlag(f.Name, f), v.BindEnv(f.Name))
		}
	})
	return v, names, err
}

// MergeService adds a service's file, which need not exist unless it is required, and those
// of FILE.d in the order of their names. Nobody may have written them but root and this user.
func MergeService(v *viper.Viper, file string, required bool, known []string) error {
	drops, err := filepath.Glob(filepath.Join(file+".d", "*.yaml"))
	if err != nil {
		return fmt.Errorf("configuration directory: %w", err)
	}
	slices.Sort(drops)
	for i, one := range append([]string{file}, drops...) {
		if _, err := os.Stat(one); err != nil && required && i == 0 {
			return fmt.Errorf("configuration: %w", err)
		}
		if err := Merge(v, one, openOurs, known); err != nil {
			return err
		}
	}
	return nil
}

// openOurs opens a file that nobody else may have written.
func openOurs(path string) (*os.File, error) {
	if path == os.DevNull {
		return os.Open(path)
	}
	return trusted.Open(path)
}

// Merge adds a file, if there is one. open opens the file, and refuses one that somebody else
// may have written. known are the keys that may stand in it.
func Merge(v *viper.Viper, file string, open func(string) (*os.File, error), known []string) error {
	f, err := open(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !isLink(file):
		return nil
	case err != nil:
		return fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	text, err := bounded.ReadAll(file, f, maxBytes)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return MergeText(v, file, text, known)
}

// isLink reports whether there is a link: one that leads nowhere is a mistake.
func isLink(file string) bool {
	_, err := os.Readlink(file)
	return err == nil
}

// MergeText is Merge of a file's text. A key without a value takes back the value of an earlier
// file, but not a key that has others below it or stands below one: that says nothing.
func MergeText(v *viper.Viper, file string, text []byte, known []string) error {
	one := viper.New()
	one.SetConfigType("yaml")
	err := values.OneDocument(text)
	if err == nil {
		err = one.ReadConfig(bytes.NewReader(text))
	}
	if err != nil {
		return fmt.Errorf("configuration %s: %s", file, strings.ReplaceAll(err.Error(), "\n", " "))
	}
	settings := one.AllSettings() // without keys that have no value
	for _, key := range one.AllKeys() {
		top, _, below := strings.Cut(key, ".")
		if below {
			top += Below
		}
		if !slices.Contains(known, top) {
			return fmt.Errorf("configuration %s: unknown key %q", file, key)
		}
		if !slices.Contains(known, key+Below) && !below && one.Get(key) == nil {
			settings[key] = nil // takes back an earlier value
		}
	}
	return v.MergeConfigMap(settings)
}
