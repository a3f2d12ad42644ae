// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/cmd/attune/internal/tunletfind"
	"github.com/attune-hpc/attune/internal/packfile"
	"github.com/attune-hpc/attune/internal/rundir"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// described is what a packed tunlet says of itself, so that a node need not
// start every tunlet to know them.
type described struct {
	SHA256      string          `json:"sha256"`
	Description json.RawMessage `json:"description"`
}

// describedTunlets returns the descriptions of those that can be used, as they
// are packed. One that does not answer is left out: the node finds out why.
func describedTunlets(ctx context.Context, found []tunlethost.Candidate) ([]byte, error) {
	list := []described{}
	for _, c := range found {
		info, sum, err := tunlethost.Describe(ctx, c, tunletfind.Asking())
		if err != nil {
			continue
		}
		text, err := protojson.Marshal(info)
		if err != nil {
			return nil, fmt.Errorf("description of the tunlet %s: %w", c.Name, err)
		}
		list = append(list, described{sum, text})
	}
	return json.Marshal(list)
}

// RememberPacked keeps the packed descriptions where the user has them, else in
// a directory below dir, and returns where that is.
func RememberPacked(packed *packfile.File, dir string) (string, error) {
	part, ok := packed.Find(packfile.Descriptions)
	if !ok {
		return "", nil
	}
	var text bytes.Buffer
	if err := packed.Extract(&text, part); err != nil {
		return "", err
	}
	var list []described
	if err := json.Unmarshal(text.Bytes(), &list); err != nil {
		return "", fmt.Errorf("%s: %w", part.Name, err)
	}
	own := filepath.Join(dir, "descriptions")
	to := cmp.Or(rundir.Current().DescriptionDir(), own)
	if to == own {
		if err := os.Mkdir(own, 0o700); err != nil {
			return "", err
		}
	}
	var errs []error
	for _, d := range list {
		info := &attunev1.DescribeResponse{}
		err := protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(d.Description, info)
		if err == nil {
			err = tunlethost.Remember(to, info, d.SHA256)
		}
		errs = append(errs, err)
	}
	return to, errors.Join(errs...)
}
