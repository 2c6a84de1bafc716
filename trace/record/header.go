package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
)

// ErrExpired is what errors match that say: the time has come from which on nobody is to read the records.
var ErrExpired = errors.New("the records have expired")

const recipientsMax = 64

// check returns what is wrong with a header.
func (h *Header) check() error {
	if !(h.Sample >= 0 && h.Sample <= 1) {
		return fmt.Errorf("the share of users is from 0 to 1, not %v", h.Sample)
	}
	_, err := h.keys()
	return err
}

// keys parses the recipients.
func (h *Header) keys() ([]age.Recipient, error) {
	if len(h.Recipients) > recipientsMax {
		return nil, fmt.Errorf("there are %d recipients; at most %d can be", len(h.Recipients), recipientsMax)
	}
	var keys []age.Recipient
	for i, text := range h.Recipients {
		parsed, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil || len(parsed) != 1 {
			return nil, fmt.Errorf("recipient %d is no public key such as age1…", i+1) // It may be a secret one.
		}
		keys = append(keys, parsed[0])
	}
	return keys, nil
}

// expired returns an error if nobody is to read the records at that time.
func (h *Header) expired(now time.Time) error {
	if h.Expires.IsZero() || now.Before(h.Expires) {
		return nil
	}
	return fmt.Errorf("%w at %s", ErrExpired, h.Expires.UTC().Format(time.RFC3339))
}

// sameRecipients reports whether the same keys open what stands behind both headers.
func (h *Header) sameRecipients(other *Header) bool {
	return slices.Equal(slices.Sorted(slices.Values(h.Recipients)), slices.Sorted(slices.Values(other.Recipients)))
}
