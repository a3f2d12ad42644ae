// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Site is a cluster with Attune on it, as scripts/site-setup makes it.
type Site struct {
	// Policy of the nodes, policy.yaml; empty: alice's jobs are tuned, those of
	// others observed.
	Policy string
	// Registrations of the site, YAML as in analyzer.yaml; empty: whatever the
	// batch system starts, to be tuned.
	Registrations string
}

// Setup writes a file for Options.Setup into a folder.
func (s Site) Setup(repository, folder string) (file string, err error) {
	script, err := filepath.Abs(filepath.Join(repository, "scripts", "site-setup"))
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, setting := range []struct{ name, value string }{{"SITE_POLICY", s.Policy}, {"SITE_REGISTRATIONS", s.Registrations}} {
		fmt.Fprintf(&text, "%s='%s'\n", setting.name, strings.ReplaceAll(setting.value, "'", `'\''`))
	}
	fmt.Fprintf(&text, "source '%s'\n", script)
	file = filepath.Join(folder, "site-setup")
	return file, os.WriteFile(file, []byte(text.String()), 0o600)
}

// reportFolder is where the Analyzer on the login node keeps reports.
const reportFolder = "/var/lib/attune/analyzer/reports"

// Reports waits until all sessions have ended, and returns their reports, JSON.
func (c *Cluster) Reports(ctx context.Context) (reports []string, err error) {
	// The Analyzer says of each session when it has begun and when it has ended.
	const wait = `until
    begun=$(grep -c 'msg="session begins"' /srv/log/analyzer)
    [ "$begun" -gt 0 ] && [ "$begun" = "$(grep -c 'msg="session ended"' /srv/log/analyzer)" ]
do sleep 0.1; done; find "$0" -name '*.json'`
	names, err := c.Run(ctx, "", Login, "bash", "-c", wait, reportFolder)
	if err != nil {
		return nil, fmt.Errorf("wait for the sessions' ends: %w", err)
	}
	for name := range strings.FieldsSeq(names) {
		text, err := c.Run(ctx, "", Login, "cat", name)
		if err != nil {
			return nil, err
		}
		reports = append(reports, text)
	}
	return reports, nil
}

// Submit runs a script as a batch job of a user's, from their home, and returns its
// output when it has ended. Files in that home are the job's: one at a time.
func (c *Cluster) Submit(ctx context.Context, user, options, script string) (string, error) {
	folder := filepath.Join("/home", user)
	job := fmt.Sprintf("#!/bin/bash\n#SBATCH %s -o %s/out\n%s\necho $? >%s/status\n", options, folder, script, folder)
	if err := c.WriteFile(ctx, filepath.Join(folder, "job"), job); err != nil {
		return "", err
	}
	// sbatch --wait looks only every ten seconds.
	const submit = `cd; rm -f out status; sbatch job >&2 || exit; until [ -s status ]; do sleep 0.1; done; cat out; exit "$(cat status)"`
	return c.Run(ctx, user, Login, "sh", "-c", submit)
}
