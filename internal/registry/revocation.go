// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Revoke has the whole site not believe certificates any more. It waits for a
// registry that is away until ctx ends.
func (c *Client) Revoke(ctx context.Context, r *attunev1.Revocation) error {
	return c.put(ctx, bucketOrders, keyOf(r), r)
}

// keyOf is where a revocation lies: two that name the same lie in one place.
func keyOf(r *attunev1.Revocation) string {
	if r.GetSerial() != "" {
		return keyRevocation + "serial." + tokenOf(r.GetSerial())
	}
	return fmt.Sprintf("%sname.%s.%d.%d", keyRevocation, tokenOf(r.GetName()), r.GetRole(), r.GetBeforeUnix())
}

// Revocations returns the list, the newest first.
func (c *Client) Revocations(ctx context.Context) ([]*attunev1.Revocation, error) {
	list, err := records[*attunev1.Revocation](ctx, &c.buckets, bucketOrders, keyRevocation+">")
	slices.SortStableFunc(list, func(a, b *attunev1.Revocation) int { return cmp.Compare(b.GetRevokedUnix(), a.GetRevokedUnix()) })
	return list, err
}

// revocations are those in a copy of the orders.
func (m *mirror) revocations() (list []*attunev1.Revocation) {
	m.each(func(key string, e entry) {
		if r, ok := e.record.(*attunev1.Revocation); ok && strings.HasPrefix(key, keyRevocation) {
			list = append(list, r)
		}
	})
	return list
}

// heed has this side not believe what was revoked, the registry's own certificate
// included. After an error this side is still connected to that registry, or does not
// remember all of it.
func (c *conn) heed(m *mirror) error {
	identity := c.options.Identity
	if identity == nil {
		return nil
	}
	return errors.Join(identity.Revoke(m.revocations()), c.leaveRevoked(identity))
}

// leaveRevoked leaves a registry whose own certificate is revoked.
func (c *conn) leaveRevoked(identity *pki.Identity) error {
	// The library's own TLSConnectionState does not lock what it reads.
	state := c.shown.server.Load()
	if state == nil || identity.Verify(*state) == nil {
		return nil
	}
	if err := c.nats.ForceReconnect(); err != nil {
		return fmt.Errorf("leave the registry, whose certificate is revoked: %w", err)
	}
	c.log.Error("the registry's certificate is revoked; connecting to another one", "url", c.options.URL)
	return nil
}

// putBack has a registry that has lost them know of revocations that this side
// remembers. After an error some of them are not there yet.
func (c *Client) putBack(ctx context.Context) error {
	if c.options.Identity == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	var failed error
	for _, r := range c.options.Identity.Revoked() {
		if e, there, _ := c.orders.get(keyOf(r)); there && !e.missing {
			continue
		}
		if err := c.Revoke(ctx, r); err != nil && failed == nil {
			failed = fmt.Errorf("put the revocation of %q, serial number %q, back into the registry: %w", r.GetName(), r.GetSerial(), err)
		}
	}
	return failed
}
