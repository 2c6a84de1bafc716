// Package redisclient opens a blocking client for a server that a user has named, for errands of
// programs: to load data, or to ask for the version. Engines have clients of their own.
//
// The package has functions only; any goroutine may call them.
package redisclient

import (
	"context"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// patience bounds an errand's connecting and each of its calls.
const patience = 30 * time.Second

// Options returns the options of a client for the server that text names, as registry.ParseOneServer
// reads it. It reads the password from its file or the environment.
func Options(text string) (resp.Options, error) {
	server, err := registry.ParseOneServer(text)
	if err != nil {
		return resp.Options{}, err
	}
	password, err := server.Password.Read()
	if err != nil {
		return resp.Options{}, err
	}
	return resp.Options{
		Addr: server.Addr(), Username: server.Username, Password: password.Reveal(), Database: server.Database,
	}, nil
}

// With opens a client for the server that text names, calls use, and closes the client. The end of ctx
// closes it, too, and is then the error.
func With(ctx context.Context, text string, use func(*blocking.Client) error) error {
	options, err := Options(text)
	if err != nil {
		return err
	}
	options.ConnectTimeout, options.RequestTimeout = patience, patience
	client := blocking.NewClient(clock.NewReal(), options)
	defer client.Close()
	defer context.AfterFunc(ctx, client.Close)()
	if err = use(client); err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
