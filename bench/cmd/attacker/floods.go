// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// sockets are those of the services, below the directory.
var sockets = []string{"run/attuned.sock", "analyzer/analyzer.sock", "analyzer/registry.sock"}

const (
	// held is how many connections are tried to have open at each socket.
	held = 300
	// callers is how many goroutines call at a time.
	callers = 8
	// streams is how many are tried to have open.
	streams = 500
	// answerWithin bounds a call.
	answerWithin = 5 * time.Second
)

// socketFlood connects to all sockets, over and over, and says nothing or nonsense; and
// hands over tasks without end.
func socketFlood(p *place) error {
	for _, name := range sockets {
		go func() {
			for {
				p.connectOften(name)
			}
		}()
	}
	client := http.Client{Timeout: answerWithin, Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", p.socket(sockets[0]))
	}}}
	for n := 0; ; n++ {
		task, err := json.Marshal(map[string]any{"pid": os.Getpid(), "uid": os.Getuid(), "job": map[string]string{"kind": "slurm", "id": fmt.Sprint("t", n)}})
		if err != nil {
			return err
		}
		answer, err := client.Post("http://attuned/v1/task", "application/json", bytes.NewReader(task))
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		_ = answer.Body.Close()
		p.count(fmt.Sprint("tasks handed over, answer ", answer.StatusCode))
	}
}

func (p *place) connectOften(name string) {
	var open []net.Conn
	for range held {
		conn, err := net.Dial("unix", p.socket(name))
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		p.count("connections to " + name)
		if len(open)%2 == 0 {
			_, _ = conn.Write([]byte(rand.Text() + "\r\n")) // it may be closed
		}
		open = append(open, conn)
	}
	time.Sleep(50 * time.Millisecond)
	for _, conn := range open {
		_ = conn.Close()
	}
}

// callFlood asks the Analyzer for everything, without end: to register all programs of
// the user's and those that take long to compare, to list, to watch, and to measure in
// all processes.
func callFlood(p *place) error {
	conn, err := grpc.NewClient("unix:"+p.socket(sockets[1]), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	sessions, probes := attunev1.NewSessionServiceClient(conn), attunev1.NewProbeServiceClient(conn)
	for range callers {
		go p.callOften("registrations", func(ctx context.Context) error { return p.register(ctx, sessions) })
		go p.callOften("lists", func(ctx context.Context) error {
			_, err := sessions.ListSessions(ctx, &attunev1.ListSessionsRequest{Ended: true})
			return err
		})
	}
	for range streams {
		go p.callOften("streams", func(ctx context.Context) error { return p.watch(ctx, sessions, probes) })
	}
	p.callOften("measure points", func(ctx context.Context) error { return p.measure(ctx, sessions, probes) })
	return nil
}

// callOften calls over and over, and counts the answers.
func (p *place) callOften(what string, call func(context.Context) error) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
		err := call(ctx)
		cancel()
		p.count(what + ", " + status.Code(err).String())
		if status.Code(err) == codes.Unavailable {
			time.Sleep(100 * time.Millisecond) // nobody is there
		}
	}
}

// register registers the user's programs, with patterns that nothing matches quickly, and
// some that are to take all memory.
func (p *place) register(ctx context.Context, sessions attunev1.SessionServiceClient) error {
	dear := strings.Repeat("(.?.?){30}", 3) + "never"
	for _, r := range []*attunev1.Registration{
		{Executable: p.program("hostile-*"), Mode: "tune"},
		{Executable: p.dir + "/fuse/*/*", Mode: "tune"},
		{Executable: p.program("hostile-exit"), Mode: "tune", Arguments: dear},
		{Executable: p.program("hostile-exit"), Mode: "tune", Sha256: strings.Repeat("0", 64)},
		{Executable: p.program("hostile-*"), Mode: "tune", Arguments: strings.Repeat("(.?){1000}", 100)},
		{Executable: strings.Repeat("*a", 2000), Mode: "tune"},
	} {
		if _, err := sessions.StartSession(ctx, &attunev1.StartSessionRequest{Registration: r}); err != nil && status.Code(err) != codes.InvalidArgument {
			return err
		}
	}
	return nil
}

// own returns one of the user's sessions.
func own(ctx context.Context, sessions attunev1.SessionServiceClient) (string, error) {
	list, err := sessions.ListSessions(ctx, &attunev1.ListSessionsRequest{})
	if err != nil {
		return "", err
	}
	for _, s := range list.GetSessions() {
		return s.GetId(), nil
	}
	return "", status.Error(codes.NotFound, "no session")
}

func (p *place) watch(ctx context.Context, sessions attunev1.SessionServiceClient, probes attunev1.ProbeServiceClient) error {
	session, err := own(ctx, sessions)
	if err != nil {
		return err
	}
	stream, err := probes.WatchProbes(ctx, &attunev1.WatchProbesRequest{Session: session, Points: points("libc.so.6", "*alloc*")})
	for err == nil {
		_, err = stream.Recv()
	}
	return err
}

// measure asks for functions that nobody finds quickly, in all sessions.
func (p *place) measure(ctx context.Context, sessions attunev1.SessionServiceClient, probes attunev1.ProbeServiceClient) error {
	list, err := sessions.ListSessions(ctx, &attunev1.ListSessionsRequest{})
	if err != nil {
		return err
	}
	for _, s := range list.GetSessions() {
		_, err = probes.AddProbes(ctx, &attunev1.AddProbesRequest{
			Session: s.GetId(), Points: points("*", "a*a*a*a*b", "a::*a::b", "*"), Follow: true,
		})
	}
	return err
}

// points are those of functions, each by its own text.
func points(object string, functions ...string) (all []*attunev1.MeasurePoint) {
	for _, function := range functions {
		all = append(all, &attunev1.MeasurePoint{
			Id: object + ":" + function, Place: attunev1.Place_PLACE_ENTRY, Delivery: attunev1.Delivery_DELIVERY_AGGREGATE,
			Target: &attunev1.MeasurePoint_Function{Function: &attunev1.FunctionTarget{Object: object, Symbols: []string{function}}},
		})
	}
	return all
}
