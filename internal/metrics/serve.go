// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"github.com/attune-hpc/attune/internal/beat"
)

const (
	// requestLimit bounds one request, and how long a connection may be idle.
	requestLimit = 5 * time.Second
	// maxConnections bounds those that are open over TCP, and maxAtOnce the requests
	// that are answered at a time: a site has one or two Prometheus.
	maxConnections = 16
	maxAtOnce      = 4
	// maxHeader bounds the header of a request, bytes.
	maxHeader = 16 << 10
	// fileEvery is how often the file is written.
	fileEvery = 15 * time.Second
)

// Handler answers with the metrics.
func (r *Registry) Handler() http.Handler {
	if r == nil {
		return http.NotFoundHandler()
	}
	return promhttp.HandlerFor(r.gatherer, promhttp.HandlerOpts{MaxRequestsInFlight: maxAtOnce})
}

// Validate says what is wrong with where metrics are to go: an address, and the path of a
// file; empty: nowhere.
func Validate(address, file string) error {
	if address != "" {
		if _, err := Address(address); err != nil {
			return fmt.Errorf("--metrics-listen %w", err)
		}
	}
	if file != "" && (!filepath.IsAbs(file) || filepath.Ext(file) != ".prom") {
		return fmt.Errorf("--metrics-file %q: give an absolute path that ends with .prom, which node_exporter reads", file)
	}
	return nil
}

// Open prepares what [Validate] has found good. What it returns serves until ctx ends.
func (r *Registry) Open(ctx context.Context, address, file string, log *slog.Logger) (run func(ctx context.Context) error, err error) {
	log = log.With("component", "metrics")
	var listener net.Listener
	if address != "" {
		if listener, err = Listen(ctx, address); err != nil {
			return nil, err
		}
		log.Info("serving metrics", "address", listener.Addr().String())
	}
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		if listener != nil {
			group.Go(func() error { return r.Serve(ctx, listener, log) })
		}
		if file != "" {
			group.Go(func() error { r.WriteFile(ctx, file, log); return nil })
		}
		return group.Wait()
	}, nil
}

// Address is where a text says to listen: HOST:PORT, and without a host this machine only.
func Address(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("%q: want HOST:PORT: %w", text, err)
	}
	host = cmp.Or(host, "127.0.0.1")
	return net.JoinHostPort(host, port), nil
}

// Listen listens at an address for [Registry.Serve], and bounds the connections.
func Listen(ctx context.Context, text string) (net.Listener, error) {
	address, err := Address(text)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics: %w", err)
	}
	return netutil.LimitListener(listener, maxConnections), nil
}

// Serve answers GET /metrics, and nothing else, until ctx ends, and closes the listener.
func (r *Registry) Serve(ctx context.Context, listener net.Listener, log *slog.Logger) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", r.Handler())
	server := &http.Server{
		Handler: mux, ReadTimeout: requestLimit, WriteTimeout: requestLimit, IdleTimeout: requestLimit, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // it only fails to close what is closed
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

// WriteFile writes the metrics to a file in an interval, for node_exporter's collector of
// text files, until ctx ends. The file is replaced as a whole. The log is told when it
// cannot be written, on change.
func (r *Registry) WriteFile(ctx context.Context, path string, log *slog.Logger) {
	failing := false
	for {
		err := prometheus.WriteToTextfile(path, r.gatherer)
		switch {
		case err != nil && !failing:
			log.Error("metrics are not written to their file", "path", path, "error", err)
		case err == nil && failing:
			log.Info("metrics are written to their file again", "path", path)
		}
		failing = err != nil
		if !beat.Pause(ctx, fileEvery) {
			return
		}
	}
}
