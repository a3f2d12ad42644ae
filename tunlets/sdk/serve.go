// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	hclog "github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// MaxMessage is what a tunlet must take in one call, bytes: measured data
	// comes in batches as the Analyzer has them from its channels, which take as
	// much.
	MaxMessage = 16 << 20

	// CrashExitCode is a tunlet's exit code after a panic, the same as the Go
	// runtime's own.
	CrashExitCode = 2
	// RefusedExitCode is that of a program which cannot be a tunlet, since what
	// it is made of is wrong: another start would only repeat it. The last line
	// on its standard error says why.
	RefusedExitCode = 78

	// crashGrace is how long a tunlet that panicked lives on, for the error to
	// reach the Analyzer before the connection breaks.
	crashGrace = 500 * time.Millisecond
	// stopGrace is how long stopping the server may take.
	stopGrace = 200 * time.Millisecond

	// memoryLimit is from where on the collector works harder, so that a tunlet stays
	// small: the host ends one of 128 MB, its program, stacks and runtime included.
	memoryLimit = 12 << 20
	// gcPercent trades a little CPU time for a small heap: a tunlet keeps some
	// hundred kilobytes alive.
	gcPercent = 200
	// instanceMemory is by how much that grows with each further instance of a tunlet
	// in the process.
	instanceMemory = 256 << 10
	// crowd is for how many instances a process gets one more processor: one that
	// never returns takes a processor from the others, in slices.
	crowd = 32
)

// Serve runs a tunlet until the Analyzer is done with it; main does nothing
// else. newTunlet is called when the first call comes, and again for each
// further session, so a constructor may print and may panic.
//
// Serve also keeps the process small (one processor, a small heap), lets
// signals that go to the whole process group pass it by (the Analyzer ends
// it), and ends it when the Analyzer is gone.
func Serve(newTunlet func() Tunlet) {
	resize(1)
	serve(func(e *ending, stderr io.Writer) func(*grpc.Server) {
		service := NewServer(newTunlet, ServerOptions{Crashed: func(report string) {
			fmt.Fprintf(stderr, "attune tunlet %s: %s\n", os.Args[0], report)
			time.AfterFunc(crashGrace, func() { e.end(CrashExitCode) })
		}})
		return func(s *grpc.Server) { attunev1.RegisterTunletServiceServer(s, service) }
	})
}

// ServePackage is Serve for a program that has several tunlets, by their names, each
// of which serves all sessions of the Analyzer in this process: newTunlet is called
// for each use by a session, in its first call. A tunlet that panics in a call ends
// for that session only; one that panics in a goroutine of its own ends all.
func ServePackage(tunlets map[string]func() Tunlet) {
	resize(1)
	serve(func(_ *ending, stderr io.Writer) func(*grpc.Server) {
		return newPackageServer(tunlets, func(tunlet, report string) {
			fmt.Fprintf(stderr, "attune tunlet %s: %s\n", tunlet, report)
		}, resize).register
	})
}

// resize gives the process what so many instances of tunlets need.
func resize(instances int) {
	debug.SetMemoryLimit(memoryLimit + int64(instances-1)*instanceMemory)
	debug.SetGCPercent(gcPercent)
	processors := min(1+instances/crowd, runtime.NumCPU())
	if processors != runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(processors)
	}
}

// serve runs a plugin of go-plugin whose services register adds.
func serve(services func(e *ending, stderr io.Writer) (register func(*grpc.Server))) {
	if os.Getenv(Handshake.MagicCookieKey) != Handshake.MagicCookieValue {
		fmt.Fprintf(os.Stderr, "%s is a tunlet, which attune starts by itself; try: attune tunlet test %[1]s\n", os.Args[0])
		os.Exit(1)
	}
	var e ending
	stop := watchParent(func() { e.end(0) })
	// go-plugin replaces os.Stderr by a stream over the connection, which a
	// crash would cut off: keep the real one.
	stderr := os.Stderr
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: Handshake,
		Plugins:         plugin.PluginSet{PluginName: &GRPCPlugin{Register: services(&e, stderr)}},
		GRPCServer:      e.newServer,
		TLSProvider:     serverTLS,
		Logger: hclog.New(&hclog.LoggerOptions{
			Level: hclog.Warn, Output: stderr, JSONFormat: true,
		}),
	})
	stop()
	os.Exit(int(e.code.Load()))
}

// ending stops the gRPC server, so that go-plugin removes its socket, and sets
// the exit code. Safe for use by several goroutines.
type ending struct {
	server atomic.Pointer[grpc.Server]
	code   atomic.Int32
}

func (e *ending) newServer(opts []grpc.ServerOption) *grpc.Server {
	s := grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(MaxMessage),
		grpc.InitialWindowSize(attunev1.FlowWindow), grpc.InitialConnWindowSize(attunev1.FlowWindow))...)
	e.server.Store(s)
	return s
}

// end makes Serve come to its end; should that hang, the process exits
// nevertheless.
func (e *ending) end(code int) {
	e.code.Store(int32(code))
	time.AfterFunc(stopGrace, func() { os.Exit(code) })
	if s := e.server.Load(); s != nil {
		s.Stop()
	}
}
