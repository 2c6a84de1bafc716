package devredis

import (
	"context"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// patience bounds a program's connecting and each of its calls.
const patience = 30 * time.Second

// Caller is a blocking client of one server or of a Redis Cluster. Any goroutine.
type Caller interface {
	Do(b *resp.Batch, deadline clock.Time, use func(resp.Replies) error) error
	Close()
}

// ClientOptions returns the options of a client for the server that text names, as registry.ParseOneServer
// reads it. It reads the password from its file or the environment.
func ClientOptions(text string) (resp.Options, error) {
	server, err := registry.ParseOneServer(text)
	if err != nil {
		return resp.Options{}, err
	}
	return options(&server)
}

func options(server *registry.Server) (resp.Options, error) {
	password, err := server.Password.Read()
	if err != nil {
		return resp.Options{}, err
	}
	sentinel := server.Sentinel
	if sentinel.Password, err = sentinel.Password.Read(); err != nil {
		return resp.Options{}, err
	}
	sentinels := resp.SentinelOptions{Username: sentinel.Username, Password: sentinel.Password.Reveal()}
	if !sentinel.Plain {
		sentinels.Secure = transport.TLS(server.TLS.Config())
	}
	return resp.Options{
		Addr: server.Addr(), Secure: transport.TLS(server.TLS.Config()), Master: server.Master, Sentinels: sentinels, Username: server.Username, Password: password.Reveal(), Database: server.Database,
	}, nil
}

// WithClient opens a client for the one server that text names, calls use, and closes the client. The end of ctx
// closes it, too, and is then the error.
func WithClient(ctx context.Context, text string, use func(*blocking.Client) error) error {
	o, err := ClientOptions(text)
	if err != nil {
		return err
	}
	o.ConnectTimeout, o.RequestTimeout = patience, patience
	client := blocking.NewClient(clock.NewReal(), o)
	return with(ctx, client, func() error { return use(client) })
}

// anyOptions returns a server, or a Redis Cluster, and the options of a client for it.
func anyOptions(text string) (server registry.Server, o resp.Options, err error) {
	if server, err = registry.ParseServer(text); err == nil {
		o, err = options(&server)
	}
	o.ConnectTimeout, o.RequestTimeout = patience, patience
	return server, o, err
}

// Check returns why there can be no client for the server, or the Redis Cluster, that text names.
func Check(text string) error {
	_, _, err := anyOptions(text)
	return err
}

// Where returns the address of the server, or the Redis Cluster, that text names. Of sentinels it is the address of the master that they name now, or
// their own if they name none.
func Where(ctx context.Context, text string) (string, error) {
	server, o, err := anyOptions(text)
	if err != nil || server.Master == "" {
		return server.Addr(), err
	}
	sentinels := blocking.NewSentinels(clock.NewReal(), o, nil)
	defer sentinels.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if master, err := sentinels.Master(ctx); err == nil {
		return master, nil
	}
	return server.Addr(), nil
}

// NewCaller returns a client of the server, or the Redis Cluster, that text names. It connects at the first call, and has patience for
// connecting and for each call. Close ends it.
func NewCaller(text string) (Caller, error) {
	server, o, err := anyOptions(text)
	if err != nil {
		return nil, err
	}
	if server.Cluster {
		return blocking.NewCluster(clock.NewReal(), o, nil), nil
	}
	return blocking.NewClient(clock.NewReal(), o), nil
}

// WithAny is WithClient for a server or a Redis Cluster.
func WithAny(ctx context.Context, text string, use func(Caller) error) error {
	client, err := NewCaller(text)
	if err != nil {
		return err
	}
	return with(ctx, client, func() error { return use(client) })
}

func with(ctx context.Context, client Caller, use func() error) error {
	defer client.Close()
	defer context.AfterFunc(ctx, client.Close)()
	err := use()
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
