package respfront

import (
	"sync/atomic"

	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/serve"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/serve/session"
)

// A Front answers clients in the protocol of Redis. Any goroutine except the loop's.
type Front struct {
	*session.Server
	service *serve.Service
	store   *access.Store
	options Options

	table       []command           // never changes
	commands    map[string]*command // by name; never changes
	commandsRun atomic.Int64
	began       clock.Time
}

// A scratch is memory that the codecs of one loop share. Loop only.
type scratch struct {
	argv [][]byte // arguments of the command that runs
	text []byte   // its reply
}

// New returns a front of a service whose engine runs on the reactor r, or on none if r is nil: see session.New. Clients log in with the
// tokens of store.
func New(service *serve.Service, store *access.Store, r *reactor.Reactor, o Options) (f *Front, err error) {
	f = &Front{
		service: service, store: store, options: o.withDefaults(), table: commandTable(), commands: make(map[string]*command),
	}
	for i := range f.table {
		f.commands[f.table[i].name] = &f.table[i]
	}
	f.Server, err = session.New(service, r, session.Protocol{
		Front: serve.RESP, TurnAway: func() []byte { return redcon.AppendError(nil, "ERR max number of clients reached") }, NewCodecs: f.newCodecs,
	}, f.options.Options)
	if err != nil {
		return nil, err
	}
	f.began = f.Loop().Clock().Now()
	return f, nil
}
