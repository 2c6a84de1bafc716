package resp

import "errors"

// Conditions of a transport-level failure, for errors.Is. A call that its owner cancelled has loop.ErrCancelled instead. A server's error reply does not match
// them: it is a Reply whose Err is a *ServerError.
var (
	// ErrConnectionLost: the connection ended after commands of the call had been
	// handed to it. The server may or may not have run them.
	ErrConnectionLost = errors.New("connection lost")
	// ErrConnect: no connection could be made; nothing was sent.
	ErrConnect = errors.New("cannot connect")
	// ErrTimeout: the call's deadline came first, or the server was silent for the request timeout.
	ErrTimeout = errors.New("timeout")
	// ErrQueueFull: MaxWaiting calls are waiting already; nothing was sent.
	ErrQueueFull = errors.New("too many waiting calls")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("client closed")
	// ErrProtocol: the server's bytes are not RESP, exceed the Limits, or answer no command.
	ErrProtocol = errors.New("protocol error")
	// ErrTooLarge: the replies to a call exceed its MaxReplyBytes.
	ErrTooLarge = errors.New("replies too large")
	// ErrUnidentified: a node of a Redis Cluster does not tell its id, so nobody notices another server at its address.
	ErrUnidentified = errors.New("the node does not tell its id (CLUSTER MYID)")
	// ErrTrackingRefused: the server, or the user's permissions, do not allow a Tracker its work.
	ErrTrackingRefused = errors.New("the server refuses tracking")
)

// Causes, which OpError wraps beside the condition.
var (
	// ErrUnsolicited: bytes arrived while no command was unanswered. It matches ErrProtocol.
	ErrUnsolicited error = &ProtocolError{Reason: "reply to no command"}
	// ErrDeadline: the deadline that the caller gave had passed. It comes with ErrTimeout.
	ErrDeadline = errors.New("the deadline of the call has passed")

	errStalled  = errors.New("the oldest command has gone unanswered for too long")
	errOverlap  = errors.New("one of the new prefixes to track begins an old one")
	errPanicked = errors.New("a callback panicked while it read replies")
)

// An OpError is the failure of a call: where, what and why. It matches both its
// Kind and what its Cause matches. Immutable once built.
type OpError struct {
	Addr  string // "host:port", or "unix:/path"
	Kind  error  // one of the conditions above
	Cause error  // why; may be nil
}

// Error implements error. If the cause is a failure of the same kind, as that of a node is for a cluster, it says so once.
func (e *OpError) Error() string {
	text, cause := "redis "+e.Addr+": "+e.Kind.Error(), e.Cause
	if node, ok := cause.(*OpError); ok && node.Kind == e.Kind {
		text, cause = text+": redis "+node.Addr, node.Cause
	}
	if cause == nil {
		return text
	}
	return text + ": " + cause.Error()
}

// Unwrap returns the condition and the cause.
func (e *OpError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}
