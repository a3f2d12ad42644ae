// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/attune-hpc/attune/cmd/internal/configfile"
	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/controller/meter"
	"github.com/attune-hpc/attune/controller/node"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/logging"
	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/offswitch"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/renew"
	"github.com/attune-hpc/attune/internal/values"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Keys of the configuration: flags, and the same in files and, with
// ATTUNED_ in front, in the environment.
const (
	keyRegistry = "registry"
	keyCA       = "tls-ca"
	keyCert     = "tls-cert"
	keyKey      = "tls-key"
	keyIssuer   = "tls-issuer"
	keyName     = "node-name"
	keyRunDir   = "run-dir"
	keyStateDir = "state-dir"
	keyPolicy   = "policy"
	keyOff      = "off-file"
	keyAudit    = "audit-log"
	keyFind     = "find"
	keyPoll     = "poll-interval"
	keyBudget   = "budget"
	keyNoBPF    = "no-bpf"
	keyLogLevel = "log-level"
	keyLogForm  = "log-format"
	keyMetrics  = "metrics-listen"
	keyMetFile  = "metrics-file"
	keyHold     = "hold-time"

	// keyBatch is in files only: batch systems beside those that are known.
	keyBatch = "batch"
)

// settings is what a start of attuned goes by.
type settings struct {
	registry     string
	tls          pki.Files
	issuer       string // who renews the certificate; empty: nobody does
	name         string
	runDir       string
	stateDir     string
	policy       string
	off          string
	audit        string
	find         string
	pollInterval time.Duration
	batch        []discover.Profile
	budget       float64
	noBPF        bool

	metricsListen string // empty: nowhere but at the local socket
	metricsFile   string // empty: none

	holdTime time.Duration

	level     slog.Level
	logFormat string
	checkOnly bool
	version   bool
}

func newFlags(stderr io.Writer) *pflag.FlagSet {
	flags := pflag.NewFlagSet("attuned", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	files := pki.NodeFiles()
	flags.String(keyRegistry, "unix:/run/attune/analyzer/registry.sock", "the site's registry: tls://HOST:PORT, or unix:PATH for that of an Analyzer on this node")
	flags.String(keyCA, files.CA, "certificate of the site's CA, for registries and Analyzers on other machines")
	flags.String(keyCert, files.Cert, "certificate of this node, role node")
	flags.String(keyKey, files.Key, "key of the certificate")
	flags.String(keyIssuer, "", "HOST:PORT of the site's issuing service (attune cert serve), which renews the certificate")
	flags.String(keyName, "", "name of this node (default: the host name)")
	flags.String(keyRunDir, "/run/attune", "directory of sockets")
	flags.String(keyStateDir, "/var/lib/attune", "directory of undo journals and of the installed library")
	flags.String(keyPolicy, policy.Path, "the site's policy; without this file nothing is touched")
	flags.String(keyOff, offswitch.Path, "nothing is touched as long as this file is there; attune off makes it")
	flags.String(keyAudit, "", "file that says who asked for what (default: STATE-DIR/audit.jsonl)")
	flags.String(keyFind, discover.ModeWatch, "how processes are found: watch, or poll where the kernel's events are not wanted")
	flags.Duration(keyPoll, discover.DefaultPollInterval, "interval of polling")
	flags.Float64(keyBudget, 100*meter.DefaultBudget, "percent of a process' CPU time that measure points may take")
	flags.Bool(keyNoBPF, false, "do not use BPF")
	flags.String(keyLogLevel, "info", "debug, info, warn or error")
	flags.String(keyLogForm, logging.FormatText, "text or json")
	flags.Duration(keyHold, time.Minute, "how long changes that are proven good stay for the attuned that follows a restart")
	flags.String(keyMetrics, "", "answer GET /metrics at HOST:PORT; :PORT is for this machine only")
	flags.String(keyMetFile, "", "write metrics to this file each 15 s, for node_exporter's collector of text files")
	return flags
}

// load reads the configuration: defaults, then the file, then the files of its
// drop-in directory in the order of their names, then the environment, then
// flags.
func load(args []string, stderr io.Writer) (settings, error) {
	flags := newFlags(stderr)
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
	v, keys, err := configfile.New("ATTUNED", flags, "config", "check-config", "version")
	if err == nil {
		err = configfile.MergeService(v, *file, flags.Changed("config"), append(keys, keyBatch))
	}
	if err != nil {
		return settings{}, fmt.Errorf("%w; attuned --help lists all settings", err)
	}
	s, err := fromViper(v)
	s.checkOnly = *check
	if err == nil {
		err = s.validate()
	}
	if err == nil && s.checkOnly {
		_, err = policy.Load(s.policy) // at a start it would deny everything instead
	}
	return s, err
}

func (s settings) policyMissing() bool {
	_, err := os.Stat(s.policy)
	return errors.Is(err, fs.ErrNotExist)
}

func fromViper(v *viper.Viper) (s settings, err error) {
	from := values.Reader{Values: v}
	s = settings{
		registry: from.Text(keyRegistry), name: from.Text(keyName),
		tls:    pki.Files{CA: from.Text(keyCA), Cert: from.Text(keyCert), Key: from.Text(keyKey)},
		issuer: from.Text(keyIssuer), runDir: from.Text(keyRunDir), stateDir: from.Text(keyStateDir),
		policy: from.Text(keyPolicy), off: from.Text(keyOff), audit: from.Text(keyAudit),
		find: from.Text(keyFind), pollInterval: from.Duration(keyPoll), budget: from.Number(keyBudget),
		noBPF: from.Truth(keyNoBPF), logFormat: from.Text(keyLogForm),
		metricsListen: from.Text(keyMetrics), metricsFile: from.Text(keyMetFile), holdTime: from.Duration(keyHold),
	}
	if from.Err != nil {
		return s, from.Err
	}
	if s.level, err = logging.ParseLevel(v.GetString(keyLogLevel)); err != nil {
		return s, err
	}
	if s.name == "" {
		if s.name, err = os.Hostname(); err != nil {
			return s, fmt.Errorf("host name: %w; give it with --%s", err, keyName)
		}
	}
	s.audit = cmp.Or(s.audit, filepath.Join(s.stateDir, "audit.jsonl"))
	s.batch, err = batchSystems(v)
	return s, err
}

// batchSystems are those that are known, and those of the configuration.
func batchSystems(v *viper.Viper) ([]discover.Profile, error) {
	var own []struct {
		Name    string   `mapstructure:"name"`
		Daemons []string `mapstructure:"daemons"`
		Parent  string   `mapstructure:"parent"`
	}
	if err := v.UnmarshalKey(keyBatch, &own); err != nil {
		return nil, fmt.Errorf("%s: %w", keyBatch, err)
	}
	profiles := discover.Profiles()
	for _, p := range own {
		if p.Name == "" || len(p.Daemons) == 0 {
			return nil, fmt.Errorf("%s: a batch system needs a name, and daemons by the names of their executables", keyBatch)
		}
		profiles = append(profiles, discover.Profile{Name: p.Name, Daemons: p.Daemons, Parent: p.Parent})
	}
	return profiles, nil
}

// validate reports what cannot be, with its remedy.
func (s settings) validate() error {
	if _, err := logging.ParseFormat(s.logFormat); err != nil {
		return err
	}
	if err := config.ValidateBudget(s.budget); err != nil {
		return fmt.Errorf("--%s: %w", keyBudget, err)
	}
	switch {
	case s.holdTime < time.Second || s.holdTime > node.MaxHold:
		return fmt.Errorf("--%s %v: give 1s to %v", keyHold, s.holdTime, node.MaxHold)
	case s.find != discover.ModeWatch && s.find != discover.ModePoll:
		return fmt.Errorf("--%s %q is neither watch nor poll", keyFind, s.find)
	case !filepath.IsAbs(s.runDir) || !filepath.IsAbs(s.stateDir) || !filepath.IsAbs(s.policy) || !filepath.IsAbs(s.off):
		return fmt.Errorf("--%s, --%s, --%s and --%s must be absolute", keyRunDir, keyStateDir, keyPolicy, keyOff)
	case len(s.runDir) > maxRunDir:
		return fmt.Errorf("--%s: %d bytes are too long for sockets in it, at most %d", keyRunDir, len(s.runDir), maxRunDir)
	}
	if err := metrics.Validate(s.metricsListen, s.metricsFile); err != nil {
		return err
	}
	if err := (registry.Options{URL: s.registry, Identity: new(pki.Identity)}).Validate(); err != nil {
		return err
	}
	if s.issuer != "" {
		if err := renew.Check(s.issuer, s.tls); err != nil {
			return fmt.Errorf("--%s: %w", keyIssuer, err)
		}
	}
	_, err := s.identity(nil)
	return err
}

// identity is the node's certificate; nil if there is none, and none is needed.
func (s settings) identity(log *slog.Logger) (*pki.Identity, error) {
	_, err := os.Stat(s.tls.Cert)
	if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(s.registry, "unix:") && s.issuer == "" {
		return nil, nil //nolint:nilnil // nil is the identity of one who needs none
	}
	return pki.OpenAs(attunev1.Role_ROLE_NODE, s.tls, log)
}

// maxRunDir leaves room for gates/NUMBER/gate in the 107 bytes of a socket's
// address.
const maxRunDir = 80

// equal says whether two configurations are the same.
func (s settings) equal(other settings) bool { return reflect.DeepEqual(s, other) }
