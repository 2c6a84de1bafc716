package blocking

import (
	"context"
	"net"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	respblocking "github.com/rankd/rankd/resp/blocking"
	"github.com/rankd/rankd/scheduler"
)

// Ping connects to an endpoint as an engine with that config does, asks a Redis for a key that nobody has, and leaves. An answer with an error is an answer, unless it
// refuses the password. A service is not asked: its port must take a connection. But a model server must say that it serves the
// model of the endpoint. The end of ctx ends the wait.
func Ping(ctx context.Context, cfg *scheduler.Config, ep *registry.Endpoint) error {
	if ep.Service.Dialect == registry.OpenInference {
		return remote.Once(ctx, scheduler.RemoteOptions(ep), nil)
	}
	if ep.Kind == registry.HTTP {
		return dial(ctx, ep)
	}
	with := cfg.WithDefaults()
	c := newClient(&with, ep)
	defer c.Close()
	defer context.AfterFunc(ctx, c.Close)()
	var b resp.Batch
	b.Cmd("EXISTS", "rankd:is anybody there?")
	var replies respblocking.ReplyBuffer
	_, err := c.Exchange(&b, clock.Time(0), &replies)
	return err
}

func dial(ctx context.Context, ep *registry.Endpoint) error {
	ctx, cancel := context.WithTimeout(ctx, ep.Policy.ConnectTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", ep.Addr())
	if err != nil {
		return err
	}
	return conn.Close()
}
