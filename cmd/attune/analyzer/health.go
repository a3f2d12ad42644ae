// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/peercred"
)

// HealthSocket is the name of the socket for those that look after services.
const HealthSocket = "analyzer-health.sock"

// health is what GET /v1/status answers.
type health struct {
	Version         string   `json:"version"`
	Analyzer        string   `json:"analyzer"`
	Addresses       []string `json:"addresses"`
	Registry        bool     `json:"registry_connected"`
	Registrations   int      `json:"registrations"`
	Owned           int      `json:"registrations_owned"`
	Sessions        int      `json:"sessions"`
	MaxSessions     int      `json:"max_sessions"`
	Refused         uint64   `json:"sessions_refused"`
	TunletProcesses int      `json:"tunlet_processes"`
	Audit           string   `json:"audit_trouble,omitempty"`
}

// health says how the service is. It names nobody, so that anybody may ask.
func (a *analyzerService) health() health {
	st := a.service.Status()
	h := health{
		Version: buildinfo.Get().Version, Analyzer: st.Record.GetId(), Addresses: st.Record.GetAddresses(),
		Registry: a.registry.Connected(), Registrations: st.Registrations, Owned: st.Owned,
		Sessions: st.Sessions, MaxSessions: st.MaxSessions, Refused: st.Refused, TunletProcesses: st.TunletProcesses,
	}
	if err := a.audit.Trouble(); err != nil {
		h.Audit = err.Error()
	}
	return h
}

// serveHealth serves a Unix socket until ctx ends: /healthz says that the
// process lives, /readyz whether it knows what is registered and can begin sessions,
// /v1/status how it is.
func (a *analyzerService) serveHealth(ctx context.Context) error {
	lis, err := peercred.Listen(filepath.Join(a.settings.runDir, HealthSocket))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !a.registry.Connected() {
			http.Error(w, "the registry is away: sessions go on, new ones cannot be registered", http.StatusServiceUnavailable)
			return
		}
		if a.embedded != nil {
			if err := a.embedded.Healthy(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		if !a.service.Ready() {
			http.Error(w, "the registry has not told yet what is registered", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
		if err := a.audit.Trouble(); err != nil {
			fmt.Fprintln(w, "the audit log is not written:", err)
		}
	})
	mux.Handle("GET /metrics", a.metrics.Handler())
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(a.health()); err != nil {
			a.log.Debug("status not delivered", "error", err)
		}
	})
	const patience = 5 * time.Second
	server := &http.Server{Handler: mux, ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: patience}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve health: %w", err)
	}
	return nil
}
