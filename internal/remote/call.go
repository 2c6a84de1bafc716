package remote

import (
	"net/http"
	"time"

	"github.com/rankd/rankd/internal/list"
	"github.com/rankd/rankd/loop/clock"
)

// An Exchange is one request to a service and its answer, as its owner writes and reads them. A goroutine off the loop
// calls both functions, each at most once, between the beginning and the end of the call. They must neither
// wait nor panic. Its owner fills it in and gives it to one call. One goroutine at a time.
type Exchange struct {
	// Request appends the body of the request to dst: a JSON document, unless it sets Header. Its error ends the call, as it
	// is; that of TooLarge gets the address.
	Request func(dst []byte) ([]byte, error)
	// Answer takes the body of the answer, which it must not keep. Its error ends the call: with ErrProtocol if
	// Malformedf made it, otherwise as it is.
	Answer func(body []byte) error

	// Header are further headers of the request, in place of those that go with each. Request may set it.
	Header http.Header
	// Before Request is called the client sets Known to what Options.Describe has returned, and Left to the time that the
	// call may take yet; before Answer it sets Got to the value of the header Wants of the answer, unless that is empty.
	Known, Wants, Got string
	Left              time.Duration
	// Asked returns the request without what differs each time, such as Left, for those that record it. Nil: the body.
	Asked func() []byte
	// Version is that of the model which has answered. Answer may set it; empty: the service does not say.
	Version string
}

// A Call is an Exchange on its way. Its owner fills in the exported fields down to Watch, and gives the call to
// Client.Do. The zero value is ready, and so is a call whose Done was invoked. Loop only.
type Call struct {
	Exchange *Exchange
	// Deadline is the instant at which the caller loses interest. Zero means none. The call never waits past it,
	// nor past RequestTimeout.
	Deadline clock.Time
	// Done is invoked exactly once for each accepted Do, on the loop, never inside a call to the client.
	Done func(*Call)
	// Watch observes the request. Nil: nobody does.
	Watch Watch

	// Err says why the call has failed, from Done on.
	Err error

	state  callState
	place  list.Link[Call] // in the queue, or in flight
	by     clock.Time      // when it times out
	cancel func(cause error)
	number int // while in flight: the least free number
}

// callState says where a Call is.
type callState uint8

const (
	idle    callState = iota // its owner has it
	waiting                  // in line
	sent                     // on its way
	ending                   // on its way, cancelled
	ended                    // Done is due
)

// A Watch observes a call, on the goroutine that drives the client: the loop, or the caller of a Blocking.
type Watch interface {
	// Sent says that a request leaves. No other request in flight has its number.
	Sent(number, requests, bytes int, at clock.Time)
	// Replied says that its answer was read.
	Replied(number, requests, bytes int)
}
