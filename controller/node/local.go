// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/logging"
	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/quota"
	"github.com/attune-hpc/attune/internal/turns"
)

const (
	// localTimeout bounds one conversation: whoever hands over a task has a job
	// waiting, and waits less.
	localTimeout = 2 * time.Second
	// maxBody bounds what is posted.
	maxBody = 64 << 10
	// asksAtOnce and asksEvery bound what one user asks for: a task that is handed over
	// is in the audit log, and may make an Analyzer begin a session. Root hands over
	// those of batch systems.
	asksAtOnce = 256
	asksEvery  = 100 * time.Millisecond
)

// SocketName is the name of the local socket in the directory of sockets, and
// ChangesPath where it tells what sessions have changed: a list of [actuate.InForce].
const (
	SocketName  = "attuned.sock"
	ChangesPath = "/v1/changes"
)

// noteHeader is the field of an answer that says what a task asked for and does not get.
const noteHeader = "Attune-Note"

// peerKey is the key of the peer's user id in a request's context.
type peerKey struct{}

// local is what answers at the local socket. Its methods may be called from any
// goroutine.
type local struct {
	log       *slog.Logger
	status    func() discover.Status
	connected func() bool // whether the registry is there
	standing  func() []turns.Standing
	sessions  *sessions
	recorder  *recorder
	handover  *handover
	auditor   auditor
	asks      *quota.Rate[uint32] // of users
	policy    func() *policy.Policy
	metrics   *metrics.Registry
}

// ServeLocal answers at the local socket, by HTTP/1, until ctx ends, and closes
// it.
func (l *local) ServeLocal(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: l.handler(), ReadTimeout: localTimeout, WriteTimeout: 2 * localTimeout, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(l.log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			peer, err := peercred.Of(conn.(syscall.Conn))
			if err != nil {
				return ctx // without a user: everything is denied
			}
			return context.WithValue(ctx, peerKey{}, uint32(peer.UID))
		},
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // it only fails to close what is closed
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("local socket: %w", err)
	}
	return nil
}

func (l *local) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", l.serveHealth)
	mux.HandleFunc("GET /readyz", l.serveReady)
	mux.HandleFunc("GET /v1/status", asUser(l.serveStatus))
	mux.HandleFunc("GET "+ChangesPath, asUser(l.serveChanges))
	mux.Handle("GET /metrics", l.metrics.Handler())
	mux.HandleFunc("POST /v1/task", asUser(l.serveTask))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if uid, ok := r.Context().Value(peerKey{}).(uint32); ok && uid != 0 && !l.asks.Wait(r.Context(), uid, localTimeout) {
			http.Error(w, "user "+strconv.FormatUint(uint64(uid), 10)+" asks too often; wait a second", http.StatusTooManyRequests)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// asUser has a peer served as the user that the kernel says it is.
func asUser(serve func(w http.ResponseWriter, r *http.Request, uid uint32)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		uid, ok := r.Context().Value(peerKey{}).(uint32)
		if !ok {
			http.Error(w, "the kernel does not say who asks", http.StatusForbidden)
			return
		}
		serve(w, r, uid)
	}
}

// serveHealth says whether all loops turn. It names no users: anybody may ask.
func (l *local) serveHealth(w http.ResponseWriter, _ *http.Request) {
	standing := l.standing()
	if len(standing) == 0 {
		_, _ = fmt.Fprintln(w, "ok")
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	for _, s := range standing {
		name := "a session"
		if s.Essential {
			name = s.Name
		}
		_, _ = fmt.Fprintf(w, "%s stands for %v\n", name, s.For.Round(time.Second))
	}
}

// serveReady says whether processes are found. A registry that is away is told,
// and is no reason to be unready: what is registered is still known. So is a policy that
// cannot be used.
func (l *local) serveReady(w http.ResponseWriter, _ *http.Request) {
	if l.status().Mode == "" {
		http.Error(w, "processes are not watched yet", http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
	if !l.connected() {
		_, _ = fmt.Fprintln(w, "the registry is away")
	}
	if l.policy().Trouble() != "" { // which quotes the file; any user may ask here
		_, _ = fmt.Fprintln(w, "the policy cannot be used: attune node list says why")
	}
}

// serveStatus tells what the node has: root everything, others what is theirs.
func (l *local) serveStatus(w http.ResponseWriter, _ *http.Request, uid uint32) {
	text, err := protojson.Marshal(l.recorder.recordFor(uid))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeJSON(w, struct {
		Registry bool            `json:"registry_connected"`
		Record   json.RawMessage `json:"record"`
	}{l.connected(), text})
}

// writeJSON answers with a document.
func writeJSON(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document) // whoever asked is gone
}

// serveChanges tells what sessions have changed: root everything, others what is changed
// in their processes.
func (l *local) serveChanges(w http.ResponseWriter, _ *http.Request, uid uint32) {
	all := []actuate.InForce{}
	for _, s := range l.sessions.list() {
		if uid == 0 || s.key.uid == uid {
			all = append(all, s.changes()...)
		}
	}
	writeJSON(w, all)
}

// serveTask takes a task that is handed over.
func (l *local) serveTask(w http.ResponseWriter, r *http.Request, uid uint32) {
	var task Task
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&task); err != nil {
		http.Error(w, "the task is no JSON: "+err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), localTimeout)
	defer cancel()
	began := time.Now()
	got, err := l.handover.takeTask(ctx, uid, task)
	l.auditor.noteTask(uid, task, began, err)
	if err != nil {
		l.log.Info("task is not taken", "pid", task.PID, "owner", task.UID, logging.UserKey, uid, "reason", err)
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	l.log.Info("task is taken", "pid", task.PID, "owner", task.UID, logging.UserKey, uid, "job", task.Job.Kind+"/"+task.Job.ID, "rank", task.Rank, "note", got.note)
	if got.note != "" {
		w.Header().Set(noteHeader, got.note)
	}
	writeEnvironment(w, r, got.env)
}

// writeEnvironment answers with a line per variable, or with JSON for whoever
// prefers that.
func writeEnvironment(w http.ResponseWriter, r *http.Request, env []string) {
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		writeJSON(w, map[string][]string{"environment": env})
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, line := range env {
		_, _ = fmt.Fprintln(w, line)
	}
}
