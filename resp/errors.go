package resp

import "errors"

// Conditions of a transport-level failure, for errors.Is.
var (
	ErrProtocol = errors.New("protocol error")
)
