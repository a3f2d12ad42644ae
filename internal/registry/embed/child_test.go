// SPDX-License-Identifier: Apache-2.0

package embed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// serveVariable makes this program something else: what its value says.
const serveVariable = "ATTUNE_TEST_SITE"

// child is what this program is to be elsewhere: in another network, or as
// another user.
type child struct {
	// Server is a registry, with the certificate in Files.
	Server *embed.Options
	Files  *pki.Files
	// Dial is an address to connect to; the exit status is 0 if that works.
	Dial string
	// Find is a registry to ask for Analyzers, Put one to write to.
	Find, Put string
	// Within is how long it tries to write: who may not is not told so by a request.
	Within time.Duration
}

// serve does what a child is for.
func serve(options string) int {
	var c child
	err := json.Unmarshal([]byte(options), &c)
	switch {
	case err != nil:
	case c.Server != nil:
		err = c.serve()
	case c.Dial != "":
		var conn net.Conn
		if conn, err = net.DialTimeout("tcp", c.Dial, time.Second); err == nil {
			err = conn.Close()
		}
	case c.Find != "":
		err = find(c.Find)
	case c.Put != "":
		err = put(c.Put, c.Within)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func (c *child) serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	identity, err := pki.Open(*c.Files, nil)
	if err != nil {
		return err
	}
	c.Server.Identity = identity
	server, err := embed.Start(*c.Server)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return server.Close()
}

// find asks until an Analyzer answers, which one that is there does sooner or later.
func find(url string) error {
	end := time.Now().Add(patience.Limit)
	for {
		_, err := registry.FindAnalyzers(context.Background(), registry.Options{URL: url})
		if !errors.Is(err, registry.ErrNoAnalyzer) || time.Now().After(end) {
			return err
		}
	}
}

// put tries for a while to write.
func put(url string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	c, err := registry.Open(ctx, registry.Options{URL: url})
	if err != nil {
		return err
	}
	defer c.Close()
	return c.DeleteRegistration(ctx, "solver")
}
