// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// racy is how long after a change a file may change again without its
	// times telling (the kernel's clock tick, or a coarse file system's).
	racy = 2 * time.Second
	// reminder is how often the log is told that a certificate ends soon.
	reminder = 24 * time.Hour
)

// Identity is one's own certificate and the CA one believes. The files are
// looked at with each handshake, and what was replaced is read; while it cannot
// be used, as between the replacement of a certificate and that of its key,
// what was read before holds. There is no goroutine and nothing to close.
type Identity struct {
	files Files
	log   *slog.Logger
	clock func() time.Time

	revoked revocations

	mu       sync.Mutex // guards what follows; a leaf lock
	now      material
	seen     [3]stamp  // of the files that now was read from
	trouble  string    // why the files cannot be used, as logged last
	reminded time.Time // when the log was told last of the end
}

// stamp tells versions of a file apart.
type stamp struct {
	dev, ino   uint64
	size       int64
	mtim, ctim unix.Timespec
}

// Open reads and checks the files; they have to be usable now. What happens to
// them later goes to log, which may be nil.
func Open(files Files, log *slog.Logger) (*Identity, error) { return OpenAt(files, log, time.Now) }

// OpenAs is Open for a service, whose certificate has to be of its role.
func OpenAs(role attunev1.Role, files Files, log *slog.Logger) (*Identity, error) {
	i, err := Open(files, log)
	if err != nil {
		return nil, err
	}
	p, err := PrincipalIn(i.Leaf())
	if err == nil && p.GetRole() != role {
		err = fmt.Errorf("it has the role %s: this service needs one of role %s (attune cert issue --role %[2]s)", RoleName(p.GetRole()), RoleName(role))
	}
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", files.Cert, err)
	}
	return i, nil
}

// OpenAt is Open by another clock than the machine's: whether certificates hold,
// the peers' too, is asked of that one. Many goroutines may ask it at a time.
func OpenAt(files Files, log *slog.Logger, clock func() time.Time) (*Identity, error) {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	i := &Identity{files: files, log: log.With("component", "pki"), clock: clock}
	now := clock()
	i.seen = files.stamps()
	var err error
	if i.now, err = files.load(now, os.Geteuid()); err != nil {
		return nil, err
	}
	i.remind(now)
	return i, nil
}

// ServerConfig makes TLS 1.3 with peers that show a certificate of the CA which
// names a role and is not revoked. It follows the files. Tickets are not given: they
// would outlive the certificate.
func (i *Identity) ServerConfig() *tls.Config {
	config := i.serverConfig(nil)
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return i.serverConfig(hello.Conn), nil }
	return config
}

// serverConfig is for one connection; nil: for any.
func (i *Identity) serverConfig(conn net.Conn) *tls.Config {
	m := i.current()
	return &tls.Config{
		Time:                   i.clock,
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{m.certificate},
		ClientAuth:             tls.RequireAndVerifyClientCert,
		ClientCAs:              m.roots,
		SessionTicketsDisabled: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if _, err := PrincipalOf(state); err != nil {
				return err
			}
			return i.Hold(conn, state)
		},
	}
}

// ClientConfig makes TLS 1.3 with servers that show a certificate of the CA for
// the name or address which was dialled. The server's role is not asked, so that
// a NATS server of the site's need not have one; see [PrincipalOf]. One's own
// certificate follows the files, the CA is that of the call: make a new one per
// connection, or use Roots, where the library at hand asks each time.
func (i *Identity) ClientConfig() *tls.Config {
	return &tls.Config{
		Time:       i.clock,
		MinVersion: tls.VersionTLS13,
		RootCAs:    i.current().roots,
		// Without the connection: who dials has it, and may hold it.
		VerifyConnection: i.Verify,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			certificate, err := i.Certificate()
			return &certificate, err
		},
	}
}

// Certificate is one's own as it is now, with its key. [ErrExpired] and
// [ErrNotYetValid] where it is out of its time: peers would refuse it without
// saying why.
func (i *Identity) Certificate() (tls.Certificate, error) {
	m := i.current()
	if err := Holds(m.certificate.Leaf, i.Now()); err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate %s: %w", i.files.Cert, err)
	}
	return m.certificate, nil
}

// Now is the time by which certificates hold.
func (i *Identity) Now() time.Time { return i.clock() }

// Roots are the CA's certificates as they are now. The error is always nil: the
// shape is that of callbacks of NATS.
func (i *Identity) Roots() (*x509.CertPool, error) { return i.current().roots, nil }

// Leaf is one's own certificate as it is now, in its time or not.
func (i *Identity) Leaf() *x509.Certificate { return i.current().certificate.Leaf }

// current is what the files say, or have said when they could be used last.
func (i *Identity) current() material {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.clock()
	if seen := i.files.stamps(); seen != i.seen || seen == [3]stamp{} {
		i.reload(seen, now)
	}
	i.remind(now)
	return i.now
}

// reload reads the files. If they cannot be used, it is called again by whoever asks next: what is
// wrong need not be theirs, and may pass without a change of them.
func (i *Identity) reload(seen [3]stamp, now time.Time) {
	m, err := i.files.load(now, os.Geteuid())
	if err != nil {
		if i.trouble != err.Error() {
			i.trouble = err.Error()
			i.log.Error("certificate was replaced by one that cannot be used, the old one stays", "error", err)
		}
		return
	}
	if !m.certificate.Leaf.Equal(i.now.certificate.Leaf) {
		i.log.Info("certificate was replaced", "file", i.files.Cert, "expires", m.certificate.Leaf.NotAfter)
		i.reminded = time.Time{}
	}
	i.now, i.seen, i.trouble = m, seen, ""
}

// remind tells the log once a day when the certificate is about to end.
func (i *Identity) remind(now time.Time) {
	leaf := i.now.certificate.Leaf
	if ExpiresSoon(leaf, now) && now.Sub(i.reminded) >= reminder {
		i.reminded = now
		i.log.Warn("certificate expires soon: renew it with attune cert renew, or attune cert issue --replace",
			"file", i.files.Cert, "expires", leaf.NotAfter)
	}
}

// ExpiresSoon says whether a certificate should be renewed: less than a fifth of
// its time is left.
func ExpiresSoon(certificate *x509.Certificate, now time.Time) bool {
	return certificate.NotAfter.Sub(now) < certificate.NotAfter.Sub(certificate.NotBefore)/5
}

// stamps are those of the three files; all zero if one of them has changed so
// shortly ago that it may change once more without its stamp telling: the
// machine's clock says so, which the file's times are of.
func (f Files) stamps() [3]stamp {
	var stamps [3]stamp
	now := time.Now()
	for n, path := range []string{f.CA, f.Cert, f.Key} {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			stamps[n] = stamp{size: -1} // it is not there
			continue
		}
		if age := now.Sub(time.Unix(st.Ctim.Unix())); age >= 0 && age < racy {
			return [3]stamp{}
		}
		stamps[n] = stamp{dev: st.Dev, ino: st.Ino, size: st.Size, mtim: st.Mtim, ctim: st.Ctim}
	}
	return stamps
}

// Present says whether there is a certificate: one of the files exists.
func (f Files) Present() bool {
	for _, path := range []string{f.Cert, f.Key} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}
