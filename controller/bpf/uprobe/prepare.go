// SPDX-License-Identifier: Apache-2.0

package uprobe

// Prepare loads what all attachments need and measures prices, so that the first one takes
// less time. It is idempotent.
func (a *attacher) Prepare() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return ErrClosed
	}
	if err := a.load(); err != nil {
		return err
	}
	a.price()
	return nil
}
