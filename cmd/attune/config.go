// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
)

// Keys of the configuration: flags of `attune run`, the same in files, and
// with ATTUNE_ in front, in upper case and with _ for -, in the environment.
const (
	keyMode      = "mode"
	keyTunlet    = "tunlet"
	keyTunletDir = "tunlet-dir"
	keyTunletMB  = "tunlet-memory"
	keyTunletCPU = "tunlet-cpu"
	keyTunletSet = "tunlet-option"
	keyProbe     = "probe"
	keyBudget    = "budget"
	keyReport    = "report"
	keyTimeline  = "timeline"
	keyRecord    = "record"
	keyQuiet     = "quiet"
	keyWatch     = "watch"
	keyNoBPF     = "no-bpf"
	keyLogFile   = "log-file"
	keyLogLevel  = "log-level"
	// keyTunlets holds each tunlet's own settings; in files only.
	keyTunlets = "tunlets"
	// keyAnalyzer is where the site's Analyzer is, and keyRegistry where one is
	// found; flags of what asks a site, and in files.
	keyAnalyzer = "analyzer"
	keyRegistry = "registry"
	// keyRegistrations are the site's own, by name; in the Analyzer's files only.
	keyRegistrations = "registrations"
)

// runFlags declares the flags of `attune run`.
func runFlags(flags *pflag.FlagSet) {
	d := config.Default()
	flags.String(keyMode, d.Mode, "what to do: observe, advise or tune")
	flags.StringArray(keyTunlet, nil, "use only the tunlet `NAME`; may be repeated")
	flags.StringArray(keyTunletDir, nil, "look for tunlets in `DIR` first; may be repeated")
	flags.StringArray(keyTunletSet, nil, "set an option of a tunlet, `TUNLET.OPTION=VALUE`; may be repeated (attune tunlet info TUNLET)")
	tunletLimitFlags(flags)
	flags.StringArray(keyProbe, nil, "measure at the `POINT`, for example libc.so.6:malloc (docs/reference/probes.md); may be repeated")
	flags.Float64(keyBudget, d.Budget, "most of a process' CPU time that measure points may take, in `PERCENT`; beyond it less is measured, 100 is no limit")
	flags.String(keyReport, "", "write the report to `FILE` as JSON")
	flags.String(keyTimeline, "", "write what happens to `FILE` as it happens, as JSON lines")
	flags.String(keyRecord, "", "record what happens to `FILE`, to try tunlets with it later: attune tunlet run --replay FILE")
	flags.Bool(keyQuiet, false, "leave out the text at the end")
	flags.Bool(keyWatch, false, "show the run live on the terminal")
	flags.Bool(keyNoBPF, false, "do not use BPF, even where it is allowed")
	flags.String(keyLogFile, "", "append the log to `FILE`")
	flags.String(keyLogLevel, d.LogLevel, "lowest level in the log file: debug, info, warn or error")
}

// tunletLimitFlags declares what one tunlet's process may take.
func tunletLimitFlags(flags *pflag.FlagSet) {
	d := config.Default()
	flags.Float64(keyTunletMB, d.TunletMB, "most memory of a tunlet's process, in `MB`; one that takes more is ended for good")
	flags.Float64(keyTunletCPU, d.TunletCPU, "most CPU time of a tunlet's process over 10 s, in `PERCENT` of a core")
}

// newRunFlags returns the flags of `attune run`, none of them given.
func newRunFlags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	runFlags(flags)
	return flags
}

// packedSettings returns one configuration file with what a file says, which may
// be "", and the flags that were given.
func packedSettings(flags *pflag.FlagSet, file string) ([]byte, error) {
	v := viper.New()
	v.SetConfigType("yaml")
	if file != "" {
		if _, err := os.Stat(file); err != nil {
			return nil, exitcode.UsageError(err, "name a configuration file with --config")
		}
		if err := merge(v, file); err != nil {
			return nil, exitcode.UsageError(err, "correct the file")
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed || !slices.Contains(fileKeys(), f.Name) {
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

// siteConfig is the site's directory.
const siteConfig = "/etc/attune"

// configFiles lists the files that are read, later ones overriding: those of
// the site, then those of the user.
func configFiles(env func(string) string) []string {
	bases := []string{siteConfig}
	if own := userConfig(env); own != "" {
		bases = append(bases, own)
	}
	return filesBelow(bases)
}

// userConfig is the user's directory; empty: they have none.
func userConfig(env func(string) string) string {
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

// merge adds one file of settings of a run, which need not exist.
func merge(v *viper.Viper, file string) error {
	return mergeKnown(v, file, append(fileKeys(), keyAnalyzer, keyRegistry))
}

// mergeKnown adds one file, which need not exist. known are the keys that may
// stand in it; tunlets and registrations have keys below them.
func mergeKnown(v *viper.Viper, file string, known []string) error {
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
		top, _, below := strings.Cut(key, ".")
		if !slices.Contains(known, top) || below && top != keyTunlets && top != keyRegistrations {
			return fmt.Errorf("configuration %s: unknown key %q", file, key)
		}
	}
	return v.MergeConfigMap(one.AllSettings())
}

// fileKeys lists what may stand in a file.
func fileKeys() []string {
	return []string{
		keyMode, keyTunlet, keyTunletDir, keyTunletMB, keyTunletCPU, keyTunletSet, keyProbe, keyBudget, keyReport, keyTimeline, keyRecord, keyQuiet,
		keyWatch, keyNoBPF, keyLogFile, keyLogLevel, keyTunlets,
	}
}

func fromViper(v *viper.Viper) (config.Run, error) {
	from := settingsReader{v: v}
	r := config.Run{
		Mode:       from.text(keyMode),
		Tunlets:    from.list(keyTunlet),
		TunletDirs: from.list(keyTunletDir),
		TunletMB:   from.number(keyTunletMB),
		TunletCPU:  from.number(keyTunletCPU),
		Probes:     from.list(keyProbe),
		Budget:     from.number(keyBudget),
		Report:     from.text(keyReport),
		Timeline:   from.text(keyTimeline),
		Record:     from.text(keyRecord),
		Quiet:      from.truth(keyQuiet),
		Watch:      from.truth(keyWatch),
		NoBPF:      from.truth(keyNoBPF),
		LogFile:    from.text(keyLogFile),
		LogLevel:   from.text(keyLogLevel),
	}
	if from.err != nil {
		return config.Run{}, from.err
	}
	if err := v.UnmarshalKey(keyTunlets, &r.TunletOptions); err != nil {
		why := strings.Join(strings.Fields(err.Error()), " ")
		return config.Run{}, exitcode.UsageError(fmt.Errorf("%s: %s", keyTunlets, why), "write a map of settings for each tunlet")
	}
	if err := setOptions(&r, from.list(keyTunletSet)); err != nil {
		return config.Run{}, err
	}
	return r, r.Validate()
}

// setOptions adds options of tunlets, each TUNLET.OPTION=VALUE, over those of the
// files.
func setOptions(r *config.Run, texts []string) error {
	for _, text := range texts {
		name, value, set := strings.Cut(text, "=")
		tunlet, option, dotted := strings.Cut(name, ".")
		if !set || !dotted || tunlet == "" || option == "" {
			return exitcode.UsageError(fmt.Errorf("%s: %q sets no option", keyTunletSet, text), "write TUNLET.OPTION=VALUE")
		}
		if r.TunletOptions == nil {
			r.TunletOptions = map[string]map[string]string{}
		}
		if r.TunletOptions[tunlet] == nil {
			r.TunletOptions[tunlet] = map[string]string{}
		}
		r.TunletOptions[tunlet][option] = value
	}
	return nil
}

// tunletLimits turns the settings into limits.
func tunletLimits(mb, percent float64) tunlethost.Limits {
	return tunlethost.Limits{MemoryBytes: uint64(mb * 1e6), CPU: percent / 100}
}

// settingsReader reads settings of any origin: files hold texts, numbers, truth
// values and lists, the environment text. It keeps the first error.
type settingsReader struct {
	v   *viper.Viper
	err error
}

// text reads one value.
func (r *settingsReader) text(key string) string {
	if value, ok := r.v.Get(key).([]any); ok {
		r.refuse(key, value, "write one value")
	}
	return r.v.GetString(key)
}

// truth reads a truth value.
func (r *settingsReader) truth(key string) bool {
	value := r.v.Get(key)
	truth, err := strconv.ParseBool(fmt.Sprint(value))
	if err != nil {
		r.refuse(key, value, "write true or false")
	}
	return truth
}

// number reads a number.
func (r *settingsReader) number(key string) float64 {
	value := r.v.Get(key)
	number, err := strconv.ParseFloat(fmt.Sprint(value), 64)
	if err != nil {
		r.refuse(key, value, "write a number")
	}
	return number
}

// count reads a number of things, at least one.
func (r *settingsReader) count(key string) int {
	value := r.v.Get(key)
	count, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil || count <= 0 {
		r.refuse(key, value, "write a whole number above 0")
	}
	return count
}

// duration reads a time, more than none.
func (r *settingsReader) duration(key string) time.Duration {
	value := r.v.Get(key)
	d, err := time.ParseDuration(fmt.Sprint(value))
	if err != nil || d <= 0 {
		r.refuse(key, value, "write a time, for example 10s")
	}
	return d
}

// list reads a list; in the environment, its elements stand between commas.
func (r *settingsReader) list(key string) []string {
	if value, ok := r.v.Get(key).(string); ok {
		if value == "" {
			return nil
		}
		return strings.Split(value, ",")
	}
	if all := r.v.GetStringSlice(key); len(all) > 0 {
		return all
	}
	return nil
}

func (r *settingsReader) refuse(key string, value any, remedy string) {
	if r.err == nil {
		r.err = exitcode.UsageError(fmt.Errorf("setting %s: %q makes no sense", key, fmt.Sprint(value)), remedy)
	}
}
