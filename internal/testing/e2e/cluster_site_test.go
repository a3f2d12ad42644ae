// SPDX-License-Identifier: Apache-2.0

//go:build site

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/cluster"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// mustCluster makes a Slurm cluster of two nodes that see this folder.
func mustCluster(t *testing.T, folder string, setup string) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Options{Repository: "../../..", Setup: setup, Keep: []string{folder}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// mustRunOn runs a command on the login node and returns its standard output.
func mustRunOn(t *testing.T, c *cluster.Cluster, user string, command ...string) string {
	t.Helper()
	out, err := c.Run(patience.Context(t), user, cluster.Login, command...)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Logs(t.Context()))
	}
	return out
}

// mustSite makes a cluster with Attune's services and no registrations, whose setup has
// more lines.
func mustSite(t *testing.T, folder, more string) *cluster.Cluster {
	t.Helper()
	setup, err := cluster.Site{Registrations: "{}"}.Setup("../../..", folder)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(setup, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(more)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return mustCluster(t, folder, setup)
}

// mustShare makes a folder for all users.
func mustShare(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, f := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(f, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
