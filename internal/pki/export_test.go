// SPDX-License-Identifier: Apache-2.0

package pki

// Held counts the connections that are held.
func Held(i *Identity) int {
	i.revoked.mu.Lock()
	defer i.revoked.mu.Unlock()
	return len(i.revoked.held)
}
