// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"testing"
)

// A controller that cannot be made is an error, wherever that shows, and the rest is
// let go.
func TestRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"no journal":     func(c *Config) { c.StateDir = os.DevNull + "/none" },
		"no start gate":  func(c *Config) { c.GatePath = os.DevNull + "/none" },
		"no session":     func(c *Config) { c.JobID = "" },
		"no such target": func(c *Config) { c.AnalyzerAddress = "unix:%zz" },
	} {
		t.Run(name, func(t *testing.T) {
			config := Config{
				AnalyzerAddress: "unix:/nonexistent", GatePath: t.TempDir() + "/gate", StateDir: t.TempDir(), JobID: "j",
			}
			spoil(&config)
			if c, err := New(config); err == nil || c != nil {
				t.Errorf("made %v, error %v", c, err)
			}
		})
	}
}
