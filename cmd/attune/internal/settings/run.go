// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/cmd/internal/configfile"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/values"
)

// Keys of the configuration: flags of `attune run`, the same in files, and
// with ATTUNE_ in front, in upper case and with _ for -, in the environment.
const (
	KeyMode      = "mode"
	KeyTunlet    = "tunlet"
	KeyTunletDir = "tunlet-dir"
	KeyTunletMB  = "tunlet-memory"
	KeyTunletCPU = "tunlet-cpu"
	keyTunletSet = "tunlet-option"
	KeyProbe     = "probe"
	KeyBudget    = "budget"
	// KeyObjective is of one program: it stands in no file but a packed program's own.
	KeyObjective = "objective"
	keyReport    = "report"
	keyHTML      = "html"
	KeyTimeline  = "timeline"
	KeyRecord    = "record"
	KeyQuiet     = "quiet"
	KeyWatch     = "watch"
	keyNoBPF     = "no-bpf"
	keyLogFile   = "log-file"
	KeyLogLevel  = "log-level"
	// KeyTunlets holds each tunlet's own settings; in files only.
	KeyTunlets = "tunlets"
	// KeyAnalyzer is where the site's Analyzer is, and keyRegistry where one is
	// found; flags of what asks a site, and in files.
	KeyAnalyzer = "analyzer"
	KeyRegistry = "registry"
	// KeyArchiveAt is where the archive of tasks is; a flag of what reads or writes it,
	// and in files.
	KeyArchiveAt = "archive-at"
	// KeyRegistrations are the site's own, by name; in the Analyzer's files only.
	KeyRegistrations = "registrations"
)

// RunFlags declares the flags of `attune run`.
func RunFlags(flags *pflag.FlagSet) {
	d := config.Default()
	flags.String(KeyMode, d.Mode, "what to do: observe, advise or tune")
	flags.StringArray(KeyTunlet, nil, "use only the tunlet `NAME`; may be repeated")
	flags.StringArray(KeyTunletDir, nil, "look for tunlets in `DIR` first; may be repeated")
	flags.StringArray(keyTunletSet, nil, "set an option of a tunlet, `TUNLET.OPTION=VALUE`; may be repeated (attune tunlet info TUNLET)")
	TunletLimitFlags(flags)
	flags.StringArray(KeyProbe, nil, "measure at the `POINT`, for example libc.so.6:malloc (docs/reference/probes.md); may be repeated")
	flags.String(KeyObjective, "", "keep a change only if `WHAT` becomes better, for example output:^step or point:FUNCTION (docs/reference/objective.md)")
	flags.Float64(KeyBudget, d.Budget, "most of a process' CPU time that measure points may take, in `PERCENT`; beyond it less is measured, 100 is no limit")
	flags.String(keyReport, "", "write the report to `FILE` as JSON")
	flags.String(keyHTML, "", "write the report to `FILE` as a page for a browser, with what the program took and how it went")
	flags.String(KeyTimeline, "", "write what happens to `FILE` as it happens, as JSON lines")
	flags.String(KeyRecord, "", "record what happens to `FILE`, to try tunlets with it later: attune tunlet run --replay FILE")
	flags.Bool(KeyQuiet, false, "leave out the text at the end")
	flags.Bool(KeyWatch, false, "show the run live on the terminal")
	flags.Bool(keyNoBPF, false, "do not use BPF, even where it is allowed")
	flags.String(keyLogFile, "", "append the log to `FILE`")
	flags.String(KeyLogLevel, d.LogLevel, "lowest level in the log file: debug, info, warn or error")
}

// TunletLimitFlags declares what one tunlet's process may take.
func TunletLimitFlags(flags *pflag.FlagSet) {
	d := config.Default()
	flags.Float64(KeyTunletMB, d.TunletMB, "most memory of a tunlet's process, in `MB`; one that takes more is ended for good")
	flags.Float64(KeyTunletCPU, d.TunletCPU, "most CPU time of a tunlet's process over 10 s, in `PERCENT` of a core")
}

// Load returns the configuration of a run: defaults, then files in their
// order, then the environment, then flags. Errors have the code for usage.
func Load(flags *pflag.FlagSet, files []string) (config.Run, error) {
	return load(flags, files, nil)
}

// LoadPacked is Load for a packed program, with what was packed as the last file.
func LoadPacked(files []string, packed []byte) (config.Run, error) {
	none := pflag.NewFlagSet("run", pflag.ContinueOnError)
	RunFlags(none)
	return load(none, files, packed)
}

func load(flags *pflag.FlagSet, files []string, packed []byte) (config.Run, error) {
	v, _, err := configfile.New("ATTUNE", flags)
	if err != nil {
		return config.Run{}, fmt.Errorf("bind settings: %w", err)
	}
	for _, file := range files {
		if err := Merge(v, file); err != nil {
			return config.Run{}, exitcode.UsageError(err, "correct the file, or run with ATTUNE=off")
		}
	}
	if err := configfile.MergeText(v, "of the packed program", packed, packedKeys()); err != nil {
		return config.Run{}, exitcode.UsageError(err, "pack it anew")
	}
	return fromViper(v)
}

func fromViper(v *viper.Viper) (config.Run, error) {
	from := values.Reader{Values: v}
	r := config.Run{
		Mode:       from.Text(KeyMode),
		Tunlets:    from.List(KeyTunlet),
		TunletDirs: from.List(KeyTunletDir),
		TunletMB:   from.Number(KeyTunletMB),
		TunletCPU:  from.Number(KeyTunletCPU),
		Probes:     from.List(KeyProbe),
		Objective:  from.Text(KeyObjective),
		Budget:     from.Number(KeyBudget),
		Report:     from.Text(keyReport),
		HTML:       from.Text(keyHTML),
		Timeline:   from.Text(KeyTimeline),
		Record:     from.Text(KeyRecord),
		Quiet:      from.Truth(KeyQuiet),
		Watch:      from.Truth(KeyWatch),
		NoBPF:      from.Truth(keyNoBPF),
		LogFile:    from.Text(keyLogFile),
		LogLevel:   from.Text(KeyLogLevel),
	}
	if from.Err != nil {
		return config.Run{}, from.Err
	}
	if err := v.UnmarshalKey(KeyTunlets, &r.TunletOptions); err != nil {
		why := strings.Join(strings.Fields(err.Error()), " ")
		return config.Run{}, exitcode.UsageError(fmt.Errorf("%s: %s", KeyTunlets, why), "write a map of settings for each tunlet")
	}
	if err := setOptions(&r, from.List(keyTunletSet)); err != nil {
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
		r.OptionsOf = append(r.OptionsOf, tunlet)
	}
	return nil
}

// TunletLimits turns the settings into limits.
func TunletLimits(mb, percent float64) tunlethost.Limits {
	return tunlethost.Limits{MemoryBytes: uint64(mb * 1e6), CPU: percent / 100}
}
