// SPDX-License-Identifier: Apache-2.0

package embed

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"

	"github.com/attune-hpc/attune/internal/pki"
)

// Options says what the server is for.
type Options struct {
	// Dir keeps the registry; it is made with mode 0700 if need be, and belongs
	// to one server at a time.
	Dir string
	// Socket is the path of a Unix socket for this host; empty: none.
	Socket string
	// Listen is HOST:PORT for clients; empty: none. Port 0: any.
	Listen string
	// LeafListen is HOST:PORT for servers of other sites; empty: none.
	LeafListen string
	// Remotes are the addresses of another site's LeafListen, tls://HOST:PORT.
	// With some, this server keeps nothing: the registry is there.
	Remotes []string
	// Identity is the certificate of this server and the CA that it believes;
	// not needed if there is only a Socket.
	Identity *pki.Identity
	// Log is told what happens; nil: nobody.
	Log *slog.Logger
}

// Validate returns an error that says what to give instead.
func (o Options) Validate() error {
	if !filepath.IsAbs(o.Dir) {
		return fmt.Errorf("registry directory %q: an absolute path is needed", o.Dir)
	}
	if o.Socket == "" && o.Listen == "" {
		return errors.New("registry listens nowhere: give a socket, or HOST:PORT")
	}
	for _, address := range []string{o.Listen, o.LeafListen} {
		if _, _, err := splitAddress(address); err != nil {
			return err
		}
	}
	for _, remote := range o.Remotes {
		if at, err := url.Parse(remote); err != nil || at.Scheme != "tls" || at.Hostname() == "" {
			return fmt.Errorf("registry of another site %q: an address is tls://HOST:PORT", remote)
		}
	}
	if o.Identity == nil && (o.Listen != "" || o.LeafListen != "" || len(o.Remotes) > 0) {
		return errors.New("registry in a network: a certificate of role node, its key and the site's CA are needed")
	}
	return nil
}

// splitAddress returns host and port of HOST:PORT; of an empty address nothing.
func splitAddress(address string) (host string, port int, err error) {
	if address == "" {
		return "", 0, nil
	}
	host, name, err := net.SplitHostPort(address)
	if err == nil {
		port, err = net.LookupPort("tcp", name)
	}
	if err != nil {
		return "", 0, fmt.Errorf("registry address %q: want HOST:PORT: %w", address, err)
	}
	return host, port, nil
}
