package respfront

import (
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

	// Loop only, but for table and began, which nobody changes.
	table       []command
	commands    map[string]*command // by name
	argv        [][]byte            // arguments of the command that runs
	text        []byte              // its reply
	commandsRun int64
	began       clock.Time
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
		Front: serve.RESP, TurnAway: func() []byte { return redcon.AppendError(nil, "ERR max number of clients reached") }, NewCodec: f.newCodec,
	}, f.options.Options)
	if err != nil {
		return nil, err
	}
	f.began = f.Loop().Clock().Now()
	return f, nil
}
