// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/attune-hpc/attune/analyzer/service"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/cmd/attune/internal/tunletfind"
	"github.com/attune-hpc/attune/cmd/internal/configfile"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/logging"
	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/renew"
	"github.com/attune-hpc/attune/internal/users"
	"github.com/attune-hpc/attune/internal/values"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Keys of the configuration of `attune analyzer serve`: flags, the same in its
// files, and with ATTUNE_ANALYZER_ in front in the environment. Those that attune
// run has too mean the same.
const (
	keyListen         = "listen"
	keyAdvertise      = "advertise"
	keyRunDir         = "run-dir"
	keyStateDir       = "state-dir"
	keyRegistryListen = "registry-listen"
	keyRegistryLeaf   = "registry-leaf-listen"
	keyRegistrySites  = "registry-remote"
	keyTLSCA          = "tls-ca"
	keyTLSCert        = "tls-cert"
	keyTLSKey         = "tls-key"
	keyTLSIssuer      = "tls-issuer"
	keyAuditLog       = "audit-log"
	keyLogFormat      = "log-format"
	keyMaxSessions    = "max-sessions"
	keyMaxTunlets     = "max-tunlet-processes"
	keyTunletDelay    = "tunlet-delay"
	keyLinger         = "linger"
	keyGrace          = "grace"
	keyLease          = "lease"
	keyProvenLease    = "proven-lease"
	keyReports        = "reports"
	keyMetrics        = "metrics-listen"
	keyMetricsFile    = "metrics-file"
	keyConfig         = "config"
	keyCheckConfig    = "check-config"
)

// registryEmbedded is the registry that the Analyzer has in itself.
const registryEmbedded = "embedded"

// analyzerSettings is what a start of the Analyzer goes by.
type analyzerSettings struct {
	listen, advertise []string
	runDir, stateDir  string
	registry          string // registryEmbedded, or an address
	embed             embed.Options
	tls               pki.Files
	tlsGiven          bool   // also where nothing needs it
	issuer            string // who renews the certificate; empty: nobody does
	auditLog          string
	metricsListen     string // empty: nowhere but at the socket
	metricsFile       string // empty: none
	logFormat         string
	level             slog.Level
	service           service.Config // without what is made of it
}

// analyzerFlags declares the flags.
func analyzerFlags(flags *pflag.FlagSet) {
	files := pki.AnalyzerFiles()
	flags.StringArray(keyListen, nil, "serve at `HOST:PORT` too, for other machines; may be repeated")
	flags.StringArray(keyAdvertise, nil, "tell other machines this `HOST:PORT` instead of what is listened at; may be repeated")
	flags.String(keyRunDir, "", "`DIR` of sockets (default: /run/attune/analyzer, of others than attune in XDG_RUNTIME_DIR)")
	flags.String(keyStateDir, "", "`DIR` of reports and of the embedded registry (default: /var/lib/attune/analyzer, of others than attune in XDG_STATE_HOME)")
	flags.String(settings.KeyRegistry, registryEmbedded, "the site's registry: embedded, or the `ADDRESS` of one, tls://HOST:PORT")
	flags.String(keyRegistryListen, "", "serve the embedded registry at `HOST:PORT` too, for other machines")
	flags.String(keyRegistryLeaf, "", "let registries of other sites join at `HOST:PORT`")
	flags.StringArray(keyRegistrySites, nil, "join the registry of another site at `ADDRESS`, tls://HOST:PORT; may be repeated")
	flags.String(keyTLSCA, files.CA, "`FILE` with certificates of the site's CA")
	flags.String(keyTLSCert, files.Cert, "`FILE` with the certificate of this Analyzer, role analyzer")
	flags.String(keyTLSKey, files.Key, "`FILE` with its key")
	flags.String(keyTLSIssuer, "", "the site's issuing service (attune cert serve) at `HOST:PORT`, which renews the certificate")
	flags.String(keyAuditLog, "", "write who asked for what to `FILE` (default: STATE-DIR/audit.jsonl)")
	flags.StringArray(settings.KeyTunletDir, nil, "look for tunlets in `DIR` first; may be repeated")
	settings.TunletLimitFlags(flags)
	flags.Int(keyMaxSessions, 2000, "most sessions at a time")
	flags.Int(keyMaxTunlets, 32, "most processes of tunlets that do not come with Attune: each of them has one for each session, of some 15 MB")
	flags.Duration(keyTunletDelay, time.Second, "age at which a session gets its tunlets")
	flags.Duration(keyLinger, 10*time.Second, "how long a session without processes waits for more")
	flags.Duration(keyGrace, 5*time.Minute, "how long a node may be out of reach before its processes count as ended")
	flags.Duration(keyLease, 30*time.Second, "how long changes that are on trial stay in force without word from an Analyzer")
	flags.Duration(keyProvenLease, 5*time.Minute, "how long changes that are proven good do, an hour at most")
	flags.Int(keyReports, 1000, "most reports to keep of ended sessions that changed something, and as many of others")
	flags.String(keyMetrics, "", "answer GET /metrics at `HOST:PORT`; :PORT is for this machine only")
	flags.String(keyMetricsFile, "", "write metrics to `FILE` each 15 s, for node_exporter's collector of text files")
	flags.String(settings.KeyLogLevel, "info", "what to log: debug, info, warn or error")
	flags.String(keyLogFormat, logging.FormatText, "how to log: text or json")
}

// ServiceDirs are where the site's service keeps its things, or a user's own.
func ServiceDirs(p *attunev1.Principal, env func(string) string) (run, state string) {
	if pki.OfService(p.GetRole()) {
		return "/run/attune/analyzer", "/var/lib/attune/analyzer"
	}
	run = fmt.Sprintf("/tmp/attune-%d", p.GetUid())
	if dir := env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		run = filepath.Join(dir, "attune")
	}
	state = filepath.Join(env("HOME"), ".local/state")
	if dir := env("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		state = dir
	}
	return filepath.Join(run, "site"), filepath.Join(state, "attune/analyzer")
}

// loadAnalyzer reads the configuration: defaults, then the file, then those of
// FILE.d in the order of their names, then the environment, then flags. Errors
// have the code for usage.
func loadAnalyzer(ctx context.Context, flags *pflag.FlagSet, file string, required bool) (analyzerSettings, error) {
	v, known, err := configfile.New("ATTUNE_ANALYZER", flags, keyConfig, keyCheckConfig)
	if err == nil {
		for _, of := range []string{settings.KeyRegistrations, settings.KeyTunlets} {
			known = append(known, of, of+configfile.Below)
		}
		err = configfile.MergeService(v, file, required, known)
	}
	var s analyzerSettings
	if err == nil {
		s, err = analyzerFrom(v)
	}
	if err == nil {
		err = s.validate()
	}
	if err != nil {
		return s, exitcode.UsageError(err, "see `attune analyzer serve --help` and docs/reference/analyzer.md")
	}
	named := slices.Sorted(maps.Keys(s.service.TunletOptions))
	for _, r := range s.service.Registrations {
		named = append(named, r.GetTunlets()...)
	}
	return s, tunletfind.CheckAll(ctx, s.service.TunletDirs, nil, named, s.service.TunletOptions)
}

// unknownUsers says which users of the site's registrations this machine does not know. Nodes
// may: each goes by its own.
func (s analyzerSettings) unknownUsers(ctx context.Context) (list []string) {
	for _, r := range s.service.Registrations {
		name := r.GetUser()
		if _, err := strconv.ParseUint(name, 10, 32); name == "" || err == nil {
			continue
		}
		if _, err := users.UserID(ctx, name); err != nil {
			list = append(list, fmt.Sprintf("registration %s: user %s is not known on this machine, and a node that does not know them either tunes nothing of theirs", strings.TrimPrefix(r.GetId(), service.SiteID), name))
		}
	}
	return list
}

// analyzerFrom takes the settings.
func analyzerFrom(v *viper.Viper) (analyzerSettings, error) {
	from := values.Reader{Values: v}
	run, state := ServiceDirs(authn.Self(), os.Getenv)
	s := analyzerSettings{
		listen: from.List(keyListen), advertise: from.List(keyAdvertise),
		runDir: cmp.Or(from.Text(keyRunDir), run), stateDir: cmp.Or(from.Text(keyStateDir), state), registry: from.Text(settings.KeyRegistry),
		tls:      pki.Files{CA: from.Text(keyTLSCA), Cert: from.Text(keyTLSCert), Key: from.Text(keyTLSKey)},
		tlsGiven: v.IsSet(keyTLSCert) && from.Text(keyTLSCert) != pki.AnalyzerFiles().Cert,
		issuer:   from.Text(keyTLSIssuer),
		auditLog: from.Text(keyAuditLog), metricsListen: from.Text(keyMetrics), metricsFile: from.Text(keyMetricsFile), logFormat: from.Text(keyLogFormat),
		service: service.Config{
			TunletDirs: from.List(settings.KeyTunletDir), TunletLimits: settings.TunletLimits(from.Number(settings.KeyTunletMB), from.Number(settings.KeyTunletCPU)),
			MaxSessions: from.Count(keyMaxSessions), MaxTunletProcesses: from.Count(keyMaxTunlets), Reports: from.Count(keyReports),
			TunletDelay: from.Duration(keyTunletDelay), Linger: from.Duration(keyLinger), Grace: from.Duration(keyGrace), Lease: from.Duration(keyLease), ProvenLease: from.Duration(keyProvenLease),
		},
	}
	s.embed = embed.Options{
		Dir: filepath.Join(s.stateDir, "registry"), Socket: filepath.Join(s.runDir, "registry.sock"),
		Listen: from.Text(keyRegistryListen), LeafListen: from.Text(keyRegistryLeaf), Remotes: from.List(keyRegistrySites),
	}
	s.auditLog = cmp.Or(s.auditLog, filepath.Join(s.stateDir, "audit.jsonl"))
	if from.Err != nil {
		return s, from.Err
	}
	err := config.ValidateTunletLimits(from.Number(settings.KeyTunletMB), from.Number(settings.KeyTunletCPU))
	if err != nil {
		return s, err
	}
	if s.level, err = logging.ParseLevel(v.GetString(settings.KeyLogLevel)); err != nil {
		return s, err
	}
	if err := v.UnmarshalKey(settings.KeyTunlets, &s.service.TunletOptions); err != nil {
		return s, fmt.Errorf("%s: %s", settings.KeyTunlets, strings.Join(strings.Fields(err.Error()), " "))
	}
	s.service.Registrations, err = siteRegistrations(v)
	return s, err
}

// siteRegistration is one of the site's own, as a file has it.
type siteRegistration struct {
	App       string   `mapstructure:"app"`
	SHA256    string   `mapstructure:"sha256"`
	Arguments string   `mapstructure:"args"`
	User      string   `mapstructure:"user"`
	BatchOnly bool     `mapstructure:"batch-only"`
	Mode      string   `mapstructure:"mode"`
	Tunlets   []string `mapstructure:"tunlets"`
	Objective string   `mapstructure:"objective"`
}

// siteRegistrations reads the site's own, by their names.
func siteRegistrations(v *viper.Viper) ([]*attunev1.Registration, error) {
	var all map[string]siteRegistration
	strict := func(c *mapstructure.DecoderConfig) { c.ErrorUnused = true }
	if err := v.UnmarshalKey(settings.KeyRegistrations, &all, strict); err != nil {
		return nil, fmt.Errorf("%s: %s", settings.KeyRegistrations, strings.Join(strings.Fields(err.Error()), " "))
	}
	var out []*attunev1.Registration
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := all[name]
		one := &attunev1.Registration{
			Id: service.SiteID + name, Executable: r.App, Sha256: r.SHA256, Arguments: r.Arguments, User: r.User,
			BatchOnly: r.BatchOnly, Mode: cmp.Or(r.Mode, "observe"), Tunlets: r.Tunlets, Objective: r.Objective,
		}
		if err := service.ValidateRegistration(one); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", settings.KeyRegistrations, name, err)
		}
		out = append(out, one)
	}
	return out, nil
}

// validate reports what cannot be.
func (s analyzerSettings) validate() error {
	if _, err := logging.ParseFormat(s.logFormat); err != nil {
		return err
	}
	if !filepath.IsAbs(s.runDir) || !filepath.IsAbs(s.stateDir) {
		return fmt.Errorf("--%s and --%s must be absolute", keyRunDir, keyStateDir)
	}
	for _, address := range append(slices.Clone(s.listen), s.advertise...) {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("--%s %q: want HOST:PORT: %w", keyListen, address, err)
		}
	}
	if err := metrics.Validate(s.metricsListen, s.metricsFile); err != nil {
		return err
	}
	if err := s.validateRegistry(); err != nil {
		return err
	}
	if s.needsTLS() {
		if _, err := pki.OpenAs(attunev1.Role_ROLE_ANALYZER, s.tls, nil); err != nil {
			return fmt.Errorf("to be reached from other machines it needs a certificate: %w", err)
		}
	}
	if s.issuer != "" {
		if err := renew.Check(s.issuer, s.tls); err != nil {
			return fmt.Errorf("--%s: %w", keyTLSIssuer, err)
		}
	}
	return nil
}

// validateRegistry reports what cannot be about the registry.
func (s analyzerSettings) validateRegistry() error {
	if s.registry == registryEmbedded {
		o := s.embed
		if s.needsTLS() {
			o.Identity = new(pki.Identity)
		}
		return o.Validate()
	}
	if s.embed.Listen != "" || s.embed.LeafListen != "" || len(s.embed.Remotes) > 0 {
		return fmt.Errorf("--%s and --%s belong to the embedded registry, --%s names another one", keyRegistryListen, keyRegistryLeaf, settings.KeyRegistry)
	}
	return registry.Options{URL: s.registry, Identity: new(pki.Identity)}.Validate()
}

// needsTLS says whether anything goes over the network.
func (s analyzerSettings) needsTLS() bool {
	remote := s.registry != registryEmbedded && !strings.HasPrefix(s.registry, "unix:")
	return s.tlsGiven || s.issuer != "" || remote || len(s.listen) > 0 || s.embed.Listen != "" || s.embed.LeafListen != "" || len(s.embed.Remotes) > 0
}

// equal says whether two configurations differ in what a reload takes over only.
func (s analyzerSettings) equal(other analyzerSettings) bool {
	other.level, other.service.Registrations = s.level, s.service.Registrations
	return reflect.DeepEqual(s, other)
}
