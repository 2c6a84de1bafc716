package httpfront

import (
	_ "embed"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/internal/version"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/serve/session"
)

// openAPIText is the document of GET /openapi.json, but for the version. A test makes it from the tables.
//
//go:embed openapi.json
var openAPIText string

// versionMark stands in openAPIText in place of the version of rankd.
const versionMark = "{version}"

// Front serves HTTP. Any goroutine except the loop's.
type Front struct {
	*session.Server
	service *serve.Service
	store   *access.Store
	options Options
	openapi []byte // the document of GET /openapi.json
	date    atomic.Pointer[date]
}

// New makes a front of the service s, whose engine runs on the reactor r, or on none if r is nil: see session.New. Clients are the callers of
// the store. The error names the options that are out of range.
func New(s *serve.Service, store *access.Store, r *reactor.Reactor, o Options) (f *Front, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("httpfront: options: %w", err)
	}
	f = &Front{service: s, store: store, options: o, openapi: []byte(strings.Replace(openAPIText, versionMark, version.Read().Module, 1))}
	f.Server, err = session.New(s, r, session.Protocol{Front: serve.HTTP, TurnAway: f.turnAway, NewCodecs: f.newCodecs}, o.sessions())
	return f, err
}

// turnAway returns the answer to a connection beyond the limit.
func (f *Front) turnAway() []byte {
	reply := f.service.Refuse(serve.HTTP, outcome.Overloaded, "", fmt.Sprintf("%d connections are open", f.options.MaxConnections))
	return f.appendReply(nil, &reply, reply.Class.Status(), "", nil, true)
}

// A date is the header Date, which all answers of a second share. Immutable.
type date struct {
	second int64
	line   string
}

// dateLine returns the header Date with its line end.
func (f *Front) dateLine() string {
	now := time.Now()
	d := f.date.Load()
	if d == nil || d.second != now.Unix() {
		d = &date{second: now.Unix(), line: "Date: " + now.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT") + "\r\n"}
		f.date.Store(d)
	}
	return d.line
}
