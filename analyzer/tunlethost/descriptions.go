// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/filecache"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxDescriptions bounds the files of the cache.
const maxDescriptions = 1024

// descriptions keeps what tunlets say of themselves, each by its name and the
// checksum of its file (many names may lead to one file): a tunlet need not be
// started to be known. docs/design/0028 has the reasons.
type descriptions filecache.Dir

func describedIn(name, sum string) string { return name + "-" + sum }

// get returns a tunlet's description; nil: it is not known, or of a version that
// is not spoken here.
func (d descriptions) get(name, sum string) *attunev1.DescribeResponse {
	content := filecache.Dir(d).Get(describedIn(name, sum))
	info := &attunev1.DescribeResponse{}
	if content == nil || proto.Unmarshal(content, info) != nil {
		return nil
	}
	if info.GetName() != name || !slices.Contains(apiVersions(), info.GetApiVersion()) {
		return nil
	}
	return info
}

// put keeps a description, unless it is kept already.
func (d descriptions) put(info *attunev1.DescribeResponse, sum string) error {
	if proto.Equal(d.get(info.GetName(), sum), info) {
		return nil
	}
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(info)
	if err != nil {
		return err
	}
	return filecache.Dir(d).Put(describedIn(info.GetName(), sum), content, maxDescriptions)
}

// Remember keeps what a tunlet whose file has that SHA-256 says of itself, in a
// directory that is somebody's Options.DescriptionDir.
func Remember(dir string, info *attunev1.DescribeResponse, sum string) error {
	return descriptions(dir).put(info, sum)
}
