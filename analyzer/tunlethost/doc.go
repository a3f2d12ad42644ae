// SPDX-License-Identifier: Apache-2.0

// Package tunlethost finds tunlets, starts them as processes of their own,
// supervises them and ends them.
//
// A tunlet is a binary called attune-tunlet-NAME in a trusted directory, or a
// NAME.tunlet.yaml there, which attune-tunlet-declarative runs. It is
// started with hashicorp/go-plugin (gRPC over a Unix socket, mutual TLS) in a
// process group of its own, so that Ctrl-C at the terminal does not reach it, with an
// environment that carries nothing of the application's (no LD_PRELOAD, no
// ATTUNE_SOCKET), and without the application's standard input. A tunlet that
// exits or hangs is started again with growing pauses, and put into quarantine
// when it does so too often, or at once when it takes too much memory or CPU time. No tunlet outlives the host: the kernel kills it
// when the thread that started it ends (Pdeathsig; that thread is held for the
// tunlet's life), and the SDK looks at its parent as well.
//
// The tunlets of a package, which are links to a program called attune-tunlets, share a
// process, with one another and with those of other hosts that have the same [Pool]:
// docs/design/0045. There a tunlet is an instance that ends by itself, when it panics,
// is ended, or takes too much CPU time. Files: host.go supervises, launch.go starts a
// process, pool.go and shared.go have those that are shared, instance.go is one use.
//
// A tunlet whose description says when it is of use is not started before that;
// descriptions outlive the run (docs/design/0028).
//
// Each tunlet has one goroutine that supervises it and one that holds its
// process. [Host.Stop] waits for all of them. The mutex of a Host is a leaf
// lock; no call leaves the package while it is held.
package tunlethost
