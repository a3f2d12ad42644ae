// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/internal/logging"
)

// Keys of the configuration: flags, and the same in files and, with
// ATTUNED_ in front, in the environment.
const (
	keyAnalyzer = "analyzer"
	keyGate     = "gate"
	keyStateDir = "state-dir"
	keyJob      = "job"
	keyNoBPF    = "no-bpf"
	keyLogLevel = "log-level"
)

// settings is what a start of attuned goes by.
type settings struct {
	controller controller.Config
	level      slog.Level
	checkOnly  bool
	version    bool
}

// load reads the configuration: defaults, then the file, then the files of its
// drop-in directory in the order of their names, then the environment, then
// flags.
func load(args []string, stderr io.Writer) (settings, error) {
	flags := pflag.NewFlagSet("attuned", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.String(keyAnalyzer, "", "address of the Analyzer, e.g. unix:/run/attune/analyzer.sock")
	flags.String(keyGate, "/run/attune/gate.sock", "Unix socket of the start gate")
	flags.String(keyStateDir, "/var/lib/attune", "directory of undo journals and of the installed library")
	flags.String(keyJob, "", "id of the job to follow (ATTUNE_JOB of its processes)")
	flags.Bool(keyNoBPF, false, "do not use BPF")
	flags.String(keyLogLevel, "info", "debug, info, warn or error")
	file := flags.String("config", "/etc/attune/attuned.yaml", "configuration file; FILE.d/*.yaml are read after it")
	check := flags.Bool("check-config", false, "check the configuration and end")
	version := flags.Bool("version", false, "print the version and end")
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	if *version {
		return settings{version: true}, nil
	}
	if flags.NArg() > 0 {
		return settings{}, fmt.Errorf("unexpected argument %q; to start a program use attune run", flags.Arg(0))
	}
	v := viper.New()
	if err := readFiles(v, *file, flags.Changed("config")); err != nil {
		return settings{}, err
	}
	v.SetEnvPrefix("ATTUNED")
	v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	v.AutomaticEnv()
	if err := v.BindPFlags(flags); err != nil {
		return settings{}, fmt.Errorf("bind flags: %w", err)
	}
	return fromViper(v, *check)
}

// readFiles reads the file, which need not exist unless it was asked for, and
// its drop-ins.
func readFiles(v *viper.Viper, file string, required bool) error {
	v.SetConfigType("yaml")
	drops, err := filepath.Glob(filepath.Join(file+".d", "*.yaml"))
	if err != nil {
		return fmt.Errorf("configuration directory: %w", err)
	}
	slices.Sort(drops)
	for i, path := range append([]string{file}, drops...) {
		v.SetConfigFile(path)
		err := v.MergeInConfig()
		if errors.Is(err, fs.ErrNotExist) && i == 0 && !required {
			continue
		}
		if err != nil {
			return fmt.Errorf("configuration file %s: %w", path, err)
		}
	}
	return nil
}

func fromViper(v *viper.Viper, check bool) (settings, error) {
	known := []string{keyAnalyzer, keyGate, keyStateDir, keyJob, keyNoBPF, keyLogLevel, "config", "check-config", "version"}
	for _, key := range v.AllKeys() {
		if !slices.Contains(known, key) {
			return settings{}, fmt.Errorf("unknown key %q in the configuration", key)
		}
	}
	s := settings{checkOnly: check, controller: controller.Config{
		AnalyzerAddress: v.GetString(keyAnalyzer),
		GatePath:        v.GetString(keyGate),
		StateDir:        v.GetString(keyStateDir),
		JobID:           v.GetString(keyJob),
		UseBPF:          !v.GetBool(keyNoBPF),
	}}
	var err error
	if s.level, err = logging.ParseLevel(v.GetString(keyLogLevel)); err != nil {
		return settings{}, err
	}
	switch {
	case s.controller.AnalyzerAddress == "":
		return settings{}, errors.New("no Analyzer; give its address with --analyzer, e.g. unix:/run/attune/analyzer.sock")
	case s.controller.JobID == "":
		return settings{}, errors.New("no job; give its id with --job")
	}
	return s, s.controller.Validate()
}
