// SPDX-License-Identifier: Apache-2.0

package inforce

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/kinds"
	"github.com/attune-hpc/attune/controller/node"
	"github.com/attune-hpc/attune/internal/rundir"
)

// ByService is who has made a change of the service.
const ByService = "attuned"

const (
	// runDir is where attuned has its socket, unless its own variable says otherwise.
	runDir         = "/run/attune"
	runDirVariable = "ATTUNED_RUN_DIR"
	// patience bounds how long attuned may take: it asks all sessions of this user.
	patience = 10 * time.Second
	// maxAnswer bounds what it may say.
	maxAnswer = 64 << 20
)

// List lists the changes that are in force in processes of this user, for root in all:
// those by hand and by runs that this user has made, and those of the service; never nil.
// An error tells what is missing in the list.
func List(ctx context.Context) ([]actuate.InForce, error) {
	services, serviceErr := askService(ctx, filepath.Join(cmp.Or(os.Getenv(runDirVariable), runDir), node.SocketName))
	dir, err := rundir.Current().LastingStateDir()
	if err != nil {
		return append([]actuate.InForce{}, services...), errors.Join(err, serviceErr)
	}
	all, err := below(dir, services)
	return all, errors.Join(err, serviceErr)
}

// below joins what the journals in a state directory say with what the service says that
// may have the same one. Its journals tell of changes whose session has ended or is away.
func below(dir string, services []actuate.InForce) ([]actuate.InForce, error) {
	known := kinds.All(kinds.Options{})
	own, err := known.Changes(dir)
	left, leftErr := known.Changes(filepath.Join(dir, node.JournalFolder))
	for _, one := range left {
		same := func(o actuate.InForce) bool { return o.ID == one.ID && o.PID == one.PID }
		if !slices.ContainsFunc(services, same) {
			one.By = ByService
			services = append(services, one)
		}
	}
	return append(append([]actuate.InForce{}, own...), services...), errors.Join(err, leftErr)
}

// askService asks attuned; none where it does not run.
func askService(ctx context.Context, socket string) (all []actuate.InForce, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ByService+node.ChangesPath, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("changes of the service: %w", err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		err = json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&all)
		for i := range all {
			all[i].By = ByService
		}
	case http.StatusNotFound: // an older one
	default:
		err = errors.New(answer.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("changes of the service: %w", err)
	}
	return all, nil
}
