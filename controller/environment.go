// SPDX-License-Identifier: Apache-2.0

package controller

import "os"

// Environment is what a program's environment needs, beside what it has, to come to
// the gate of the controller that is made from c.
func (c Config) Environment() []string {
	var env []string
	if c.JobID != "" {
		env = append(env, "ATTUNE_JOB="+c.JobID)
	}
	if c.LibraryPath == "" {
		return env
	}
	if c.LateLibrary {
		// What the program starts gets DMLib late, and nothing of ours in its
		// environment: a job takes that to nodes and into containers that lack the
		// library, and outlives it here.
		env = append(env, "ATTUNE_ONCE=1")
	}
	preload := c.LibraryPath
	if present := os.Getenv("LD_PRELOAD"); present != "" {
		preload += ":" + present
	}
	return append(env, "ATTUNE_SOCKET="+c.GatePath, "LD_PRELOAD="+preload, sanitizerOption())
}

// sanitizerOption lets programs with a shared AddressSanitizer, which otherwise
// end at once where anything is preloaded, run.
func sanitizerOption() string {
	const option = "verify_asan_link_order=0"
	if present := os.Getenv("ASAN_OPTIONS"); present != "" {
		return "ASAN_OPTIONS=" + present + ":" + option
	}
	return "ASAN_OPTIONS=" + option
}
