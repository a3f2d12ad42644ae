// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package embed_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	"github.com/attune-hpc/attune/internal/testing/smalldisk"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// smallDisk mounts a disk of 16 MiB until the test ends.
func smallDisk(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	smalldisk.Mount(t, dir, "size=16m")
	return dir
}

// A registry whose disk is full says so, takes nothing back, and goes on when
// there is room, at the same address.
func TestDiskIsFull(t *testing.T) {
	dir, site := smallDisk(t), pkitest.New(t)
	server := mustStart(t, embed.Options{
		Dir: filepath.Join(dir, "registry"), Socket: filepath.Join(t.TempDir(), "socket"),
		Listen: "127.0.0.1:0", Identity: site.Analyzer(t, "server"),
	})
	distant := mustOpen(t, "tls://"+server.Addr(), site.Analyzer(t, "analyzer"))
	c := mustOpen(t, server.URL(), nil)
	mustPut(t, c, "before")
	mustSee(t, c, "before")

	makeRoom := smalldisk.Fill(t, dir)
	if server.Healthy() == nil {
		t.Error("it is well, on a full disk that nobody has written to yet")
	}
	for i := 0; mayPut(t, c, fmt.Sprint("meanwhile-", i)); i++ {
	}
	makeRoom()
	mustPut(t, c, "after")
	mustSee(t, c, "after")
	mustSee(t, distant, "after")
	list, err := mustOpen(t, server.URL(), nil).Registrations(patience.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	kept := make(map[string]bool)
	for _, r := range list {
		kept[r.GetId()] = true
	}
	if !kept["before"] || !kept["after"] {
		t.Errorf("registrations: %v", kept)
	}
	if err := server.Healthy(); err != nil {
		t.Error(err)
	}
}

// A registry that starts while its disk is full, with records or for the first time, serves,
// says so, and keeps records when there is room.
func TestStartsOnFullDisk(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("for the first time: %v", first), func(t *testing.T) {
			dir, socket := smallDisk(t), filepath.Join(t.TempDir(), "socket")
			options := embed.Options{Dir: filepath.Join(dir, "registry"), Socket: socket}
			if !first {
				before, err := embed.Start(options)
				if err != nil {
					t.Fatal(err)
				}
				mustPut(t, mustOpen(t, before.URL(), nil), "before")
				if err := before.Close(); err != nil {
					t.Fatal(err)
				}
			}
			makeRoom := smalldisk.Fill(t, dir)
			server := mustStart(t, options)
			ask(t, server.URL())
			if server.Healthy() == nil {
				t.Error("it is well")
			}
			c := mustOpen(t, server.URL(), nil)
			if mayPut(t, c, "meanwhile") {
				t.Error("it has room")
			}
			makeRoom()
			mustPut(t, c, "after")
			mustSee(t, c, "after")
			if !first {
				mustSee(t, c, "before")
			}
		})
	}
}

// ask has clients come and ask until the test ends.
func ask(t *testing.T, url string) {
	var asking sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); asking.Wait() })
	for range 4 {
		asking.Go(func() {
			for ctx.Err() == nil {
				if c, err := registry.Open(ctx, registry.Options{URL: url, TTL: time.Hour}); err == nil {
					_, _ = c.Registrations(ctx)
					c.Close()
				}
			}
		})
	}
}

// mayPut tries to write for a short time.
func mayPut(t *testing.T, c *registry.Client, id string) bool {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return c.PutRegistration(ctx, &attunev1.Registration{Id: id, Executable: string(make([]byte, 4096))}) == nil
}
