// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
)

// Keys of the configuration: flags of `attune run`, the same in files, and
// with ATTUNE_ in front, in upper case and with _ for -, in the environment.
const (
	keyMode      = "mode"
	keyTunlet    = "tunlet"
	keyTunletDir = "tunlet-dir"
	keyProbe     = "probe"
	keyReport    = "report"
	keyTimeline  = "timeline"
	keyQuiet     = "quiet"
	keyWatch     = "watch"
	keyNoBPF     = "no-bpf"
	keyLogFile   = "log-file"
	keyLogLevel  = "log-level"
	// keyTunlets holds each tunlet's own settings; in files only.
	keyTunlets = "tunlets"
)

// runFlags declares the flags of `attune run`.
func runFlags(flags *pflag.FlagSet) {
	d := config.Default()
	flags.String(keyMode, d.Mode, "what to do: observe, advise or tune")
	flags.StringArray(keyTunlet, nil, "use only the tunlet `NAME`; may be repeated")
	flags.StringArray(keyTunletDir, nil, "look for tunlets in `DIR` first; may be repeated")
	flags.StringArray(keyProbe, nil, "count calls of the function `OBJECT:SYMBOL`; may be repeated")
	flags.String(keyReport, "", "write the report to `FILE` as JSON")
	flags.String(keyTimeline, "", "write what happens to `FILE` as it happens, as JSON lines")
	flags.Bool(keyQuiet, false, "leave out the text at the end")
	flags.Bool(keyWatch, false, "show the run live on the terminal")
	flags.Bool(keyNoBPF, false, "do not use BPF, even where it is allowed")
	flags.String(keyLogFile, "", "append the log to `FILE`")
	flags.String(keyLogLevel, d.LogLevel, "lowest level in the log file: debug, info, warn or error")
}

// siteConfig is the site's directory.
const siteConfig = "/etc/attune"

// configFiles lists the files that are read, later ones overriding: those of
// the site, then those of the user.
func configFiles(env func(string) string) []string {
	bases := []string{siteConfig}
	switch dir, home := env("XDG_CONFIG_HOME"), env("HOME"); {
	case filepath.IsAbs(dir):
		bases = append(bases, filepath.Join(dir, "attune"))
	case filepath.IsAbs(home):
		bases = append(bases, filepath.Join(home, ".config/attune"))
	}
	return filesBelow(bases)
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

// load returns the configuration of a run: defaults, then files in their
// order, then the environment, then flags. Errors have the code for usage.
func load(flags *pflag.FlagSet, files []string) (config.Run, error) {
	v := viper.NewWithOptions(viper.EnvKeyReplacer(strings.NewReplacer("-", "_")))
	v.SetConfigType("yaml")
	for _, file := range files {
		if err := merge(v, file); err != nil {
			return config.Run{}, exitcode.UsageError(err, "correct the file, or run with ATTUNE=off")
		}
	}
	v.SetEnvPrefix("ATTUNE")
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && err == nil {
			err = errors.Join(v.BindPFlag(f.Name, f), v.BindEnv(f.Name))
		}
	})
	if err != nil {
		return config.Run{}, fmt.Errorf("bind settings: %w", err)
	}
	return fromViper(v)
}

// merge adds one file, which need not exist.
func merge(v *viper.Viper, file string) error {
	f, err := os.Open(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission) && !strings.HasPrefix(file, siteConfig):
		return nil // HOME is still somebody else's, as after su
	case err != nil:
		return fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	one := viper.New()
	one.SetConfigType("yaml")
	if err := one.ReadConfig(f); err != nil {
		return fmt.Errorf("configuration %s: %s", file, strings.ReplaceAll(err.Error(), "\n", " "))
	}
	for _, key := range one.AllKeys() {
		if !slices.Contains(fileKeys(), key) && !strings.HasPrefix(key, keyTunlets+".") {
			return fmt.Errorf("configuration %s: unknown key %q", file, key)
		}
	}
	return v.MergeConfigMap(one.AllSettings())
}

// fileKeys lists what may stand in a file.
func fileKeys() []string {
	return []string{
		keyMode, keyTunlet, keyTunletDir, keyProbe, keyReport, keyTimeline, keyQuiet,
		keyWatch, keyNoBPF, keyLogFile, keyLogLevel, keyTunlets,
	}
}

func fromViper(v *viper.Viper) (config.Run, error) {
	r := config.Run{
		Mode:       v.GetString(keyMode),
		Tunlets:    list(v, keyTunlet),
		TunletDirs: list(v, keyTunletDir),
		Probes:     list(v, keyProbe),
		Report:     v.GetString(keyReport),
		Timeline:   v.GetString(keyTimeline),
		Quiet:      v.GetBool(keyQuiet),
		Watch:      v.GetBool(keyWatch),
		NoBPF:      v.GetBool(keyNoBPF),
		LogFile:    v.GetString(keyLogFile),
		LogLevel:   v.GetString(keyLogLevel),
	}
	if err := v.UnmarshalKey(keyTunlets, &r.TunletOptions); err != nil {
		return config.Run{}, exitcode.UsageError(fmt.Errorf("%s: %w", keyTunlets, err),
			"write a map of settings for each tunlet")
	}
	return r, r.Validate()
}

// list reads a list; in the environment, its elements stand between commas.
func list(v *viper.Viper, key string) []string {
	if text, ok := v.Get(key).(string); ok {
		if text == "" {
			return nil
		}
		return strings.Split(text, ",")
	}
	if all := v.GetStringSlice(key); len(all) > 0 {
		return all
	}
	return nil
}
