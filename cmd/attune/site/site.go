// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/cmd/attune/analyzer"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/values"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// sitePatience is how long the site may take for an answer; sessions are stopped
// within that.
const sitePatience = 30 * time.Second

// connectPatience is how long one address may take to be reached before the next is
// tried: a firewall may drop what is sent to it.
const connectPatience = 3 * time.Second

// errNoSite is returned where no Analyzer can be found.
var errNoSite = errors.New("no Analyzer of a site is known here")

// Flags say where the site's Analyzer is.
type Flags struct{ analyzer, registry string }

// Add declares the flags.
func (f *Flags) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.analyzer, settings.KeyAnalyzer, "", "ask the Analyzer at `ADDRESS`, HOST:PORT or unix:PATH")
	flags.StringVar(&f.registry, settings.KeyRegistry, "", "find an Analyzer in the registry at `ADDRESS`, tls://HOST:PORT")
}

// Client is a connection to an Analyzer of the site.
type Client struct {
	attunev1.SessionServiceClient

	// Conn is the connection, for other services of the same Analyzer.
	Conn *grpc.ClientConn
}

func (c *Client) close() { _ = c.Conn.Close() } // nothing is under way

// Ask calls an Analyzer of the site, and goes on to another one if that one has
// what is asked for.
func Ask[R any](ctx context.Context, f Flags, call func(context.Context, *Client) (R, error)) (R, error) {
	var none R
	addresses, err := f.addresses(ctx)
	if err != nil {
		return none, err
	}
	answer, err := askAt(ctx, addresses, call)
	if other := owner(err); other != nil {
		answer, err = askAt(ctx, reachable(other), call)
	}
	if err != nil {
		return none, siteError(err)
	}
	return answer, nil
}

// askAt calls the Analyzer at the first of the addresses that can be reached. What may have
// reached one is not asked again: it may have been done.
func askAt[R any](ctx context.Context, addresses []string, call func(context.Context, *Client) (R, error)) (answer R, err error) {
	ctx, cancel := context.WithTimeout(ctx, sitePatience)
	defer cancel()
	err = errNoSite
	for i, address := range addresses {
		var brief []grpc.DialOption
		if i < len(addresses)-1 {
			brief = append(brief, grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: connectPatience}))
		}
		var c *Client
		if c, err = Dial(address, brief...); err != nil {
			continue
		}
		reached := c.connect(ctx)
		answer, err = call(ctx, c)
		c.close()
		if reached || status.Code(err) != codes.Unavailable {
			return answer, err
		}
	}
	return answer, err
}

// connect says whether there is a connection; why not, a call says.
func (c *Client) connect(ctx context.Context) bool {
	c.Conn.Connect()
	for {
		state := c.Conn.GetState()
		if state == connectivity.Ready || state == connectivity.TransientFailure || !c.Conn.WaitForStateChange(ctx, state) {
			return state == connectivity.Ready
		}
	}
}

// Dial prepares a connection. A service of the site is believed, and on this
// machine one of this user.
func Dial(address string, more ...grpc.DialOption) (*Client, error) {
	o := authn.Options{Admit: isService}
	if !strings.HasPrefix(address, "unix:") {
		var err error
		if o.Identity, err = ownIdentity(); err != nil {
			return nil, err
		}
	}
	conn, err := grpc.NewClient(address, append(more, grpc.WithTransportCredentials(authn.New(o)), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(attunev1.MaxAnswer)))...)
	if err != nil {
		return nil, err
	}
	return &Client{attunev1.NewSessionServiceClient(conn), conn}, nil
}

func isService(p *attunev1.Principal) error {
	if p.GetRole() == attunev1.Role_ROLE_ANALYZER || authn.OwnAndRoot(p) == nil {
		return nil
	}
	return fmt.Errorf("%s has not the role analyzer: it is no Analyzer of this site", p.GetName())
}

// ownIdentity is the user's certificate.
func ownIdentity() (*pki.Identity, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, err
	}
	if files := pki.UserFiles(filepath.Join(dir, "attune")); files.Present() {
		return pki.Open(files, nil)
	}
	return nil, errors.New("you have no certificate for other machines: ask for user.crt and user.key, made by `attune cert issue`, and put them into ~/.config/attune")
}

// addresses are where an Analyzer of the site may be, best first.
func (f Flags) addresses(ctx context.Context) ([]string, error) {
	if err := f.fill(); err != nil {
		return nil, err
	}
	if f.analyzer != "" {
		return []string{f.analyzer}, nil
	}
	if f.registry != "" {
		return f.find(ctx)
	}
	own, _ := analyzer.ServiceDirs(authn.Self(), os.Getenv)
	site, _ := analyzer.ServiceDirs(authn.OfUser(0), os.Getenv)
	var found []string
	for _, dir := range []string{own, site} {
		path := filepath.Join(dir, analyzer.ServiceSocket)
		if _, err := os.Stat(path); err == nil && !slices.Contains(found, "unix:"+path) {
			found = append(found, "unix:"+path)
		}
	}
	if len(found) == 0 {
		return nil, &exitcode.Error{Code: exitcode.Failure, Err: errNoSite,
			Remedy: "name one with --analyzer or --registry, in the environment as ATTUNE_ANALYZER, or in attune.yaml; `attune analyzer serve` starts one"}
	}
	return found, nil
}

// fill takes from the environment what no flag says, else from the last file that
// does. Each place says where the Analyzer is by itself: with an address of one
// kind, none of the other kind counts that stands behind it.
func (f *Flags) fill() error {
	if *f == (Flags{}) {
		f.analyzer, f.registry = os.Getenv("ATTUNE_ANALYZER"), os.Getenv("ATTUNE_REGISTRY")
	}
	if *f == (Flags{}) {
		if err := f.read(settings.Files(os.Getenv)); err != nil {
			return exitcode.UsageError(err, "correct the file")
		}
	}
	if f.analyzer != "" && f.registry != "" {
		return exitcode.UsageError(errors.New("both an Analyzer and a registry are named"), "name one of them")
	}
	return nil
}

// read takes what the last of the files says that says anything.
func (f *Flags) read(files []string) error {
	return settings.EachFile(files, func(from *values.Reader) {
		if one := (Flags{from.Text(settings.KeyAnalyzer), from.Text(settings.KeyRegistry)}); one != (Flags{}) {
			*f = one
		}
	})
}

// find asks the registry.
func (f Flags) find(ctx context.Context) ([]string, error) {
	o := registry.Options{URL: f.registry, Name: "attune"}
	if !strings.HasPrefix(f.registry, "unix:") {
		var err error
		if o.Identity, err = ownIdentity(); err != nil {
			return nil, &exitcode.Error{Code: exitcode.Failure, Err: err}
		}
	}
	analyzers, err := registry.FindAnalyzers(ctx, o)
	if err != nil {
		return nil, &exitcode.Error{Code: exitcode.Failure, Err: err, Remedy: "is an Analyzer running? `attune analyzer serve` starts one"}
	}
	var out []string
	for _, a := range analyzers {
		out = append(out, reachable(a)...)
	}
	return out, nil
}

// reachable are the addresses of an Analyzer that can be dialled from here: Unix
// sockets on its own host only.
func reachable(a *attunev1.AnalyzerRecord) []string {
	host, err := os.Hostname()
	var out []string
	for _, address := range a.GetAddresses() {
		if strings.HasPrefix(address, "unix:") {
			if err == nil && host == a.GetHost() {
				out = slices.Insert(out, 0, address)
			}
		} else if _, _, err := net.SplitHostPort(address); err == nil {
			out = append(out, address)
		}
	}
	return out
}

// owner returns the Analyzer that an error names; nil if it names none.
func owner(err error) *attunev1.AnalyzerRecord {
	for _, detail := range status.Convert(err).Details() {
		if a, ok := detail.(*attunev1.AnalyzerRecord); ok && err != nil {
			return a
		}
	}
	return nil
}

// siteError is what an answer means to a person.
func siteError(err error) error {
	e := &exitcode.Error{Code: exitcode.Failure, Err: cli.Said(err)}
	switch status.Code(err) {
	case codes.Unavailable:
		_, why, _ := strings.Cut(err.Error(), "Error while dialing: ") // of gRPC's own errors
		if e.Err = cli.Said(err); why != "" {
			e.Err = fmt.Errorf("the Analyzer is not reached: %s", strings.TrimSuffix(why, `"`))
		}
		e.Remedy = "is the Analyzer running, and is the address right?"
		if strings.Contains(err.Error(), "remote error: tls: ") { // an alert is all that a server says
			e.Err = errors.New("the Analyzer refuses your certificate: it has ended, was revoked, or is of another site's CA")
			e.Remedy = "`attune cert show` says whether it holds; if so, ask an admin of the site: `attune cert revoked`"
		}
	case codes.InvalidArgument:
		e.Code = exitcode.Usage
	case codes.NotFound:
		e.Remedy = "`attune session list --all` shows yours"
	}
	return e
}
